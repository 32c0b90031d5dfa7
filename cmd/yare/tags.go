package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/cmd/yare/internal/tags"
)

func newTags() *cobra.Command {
	var isWritten bool
	cmd := &cobra.Command{
		Use:   "tags FILE...",
		Short: "Rewrite the markers of kubebuilder in Go files into crd tags",
		Long: `tags prints Go files with crd tags in place of the markers of kubebuilder. Markers of a type become
methods of the type, and the markers of a kind become its method Definition. Then crd.Of derives the
definition, and NAME crd --diff compares it with the one that controller-gen has made.

A marker without a counterpart stays as a comment. A line with its place and the way out is printed on
the standard error.`,
		Example: `  yare tags api/v1/webapp_types.go | diff api/v1/webapp_types.go -
  yare tags -w api/v1/*_types.go`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			for _, file := range files {
				text, notes, err := tags.Rewrite(file)
				if err != nil {
					return err
				}
				for _, n := range notes {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", n.Position, n.Text)
				}
				if !isWritten {
					_, err = cmd.OutOrStdout().Write(text)
				} else {
					err = writeIfChanged(file, text)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&isWritten, "write", "w", false, "write the files")
	return cmd
}

// writeIfChanged replaces the content of a file, unless it is the same.
func writeIfChanged(path string, text []byte) error {
	old, err := os.ReadFile(path)
	if err != nil || string(old) == string(text) {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
