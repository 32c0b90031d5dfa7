package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of yare and of the Go it was built with",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version := plane.OwnVersion()
			if version == "" {
				version = "(built from a folder)"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "yare %s, %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
