package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
)

func newImage(out *console.Console) *cobra.Command {
	var output, push, tag, ca, platforms string
	var insecure, certificates bool
	cmd := &cobra.Command{
		Use:   "image DIR",
		Short: "Make a container image of the operator in DIR, without Docker",
		Long: `image compiles the operator in DIR, a Go main package, for linux/amd64 and linux/arm64, and
makes one image of both. The image has one layer on an empty base: the binary /NAME, which runs as
the user 65532. Its bill of materials (SPDX) is in the index beside it.

The image goes to a registry (--push), into a file (-o), or to both. The last line, on standard
output, is the image by digest and the size of all its parts in bytes:

  registry.example.com/webapp@sha256:6f0c... 13012345

The same commit, Go version and flags give the same digest. GOFLAGS and the like do not count.
Of a repository with changes that are not committed, the version ends with +dirty. So FILE belongs
outside of the repository, or into its .gitignore.

Credentials are those of docker login and podman login. The file is an OCI image layout, for
ctr images import, docker load, podman load and skopeo.`,
		Example: `  yare image --push registry.example.com/webapp:v1 ./examples/webapp
  yare image -o /tmp/webapp.tar --tag registry.example.com/webapp:v1 ./examples/webapp`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one folder, that of the operator's main package: yare image -o FILE DIR, or yare image --push REF DIR")
			}
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return fmt.Errorf("%s is no folder: name the folder of the operator's main package", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" && push == "" {
				return errors.New("name where the image goes: -o FILE writes a file, and --push REF pushes to a registry")
			}
			process.EndWithGo()
			binary, err := plane.Finder{Module: plane.ImageBuilder(), Dir: args[0], Console: out}.Find(cmd.Context())
			if err != nil {
				return err
			}
			argv := []string{
				binary, "--output=" + output, "--push=" + push, "--tag=" + tag, "--ca=" + ca, "--platform=" + platforms,
				"--insecure=" + strconv.FormatBool(insecure), "--ca-certificates=" + strconv.FormatBool(certificates), "--", args[0],
			}
			// The builder replaces this process: it gets the signals, and its status is ours.
			if err := syscall.Exec(binary, argv, os.Environ()); err != nil {
				return fmt.Errorf("run %s: %w", binary, err)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the image to this `FILE`, a tar archive")
	cmd.Flags().StringVar(&push, "push", "", "push the image to a registry as `REF`, such as registry.example.com/webapp:v1")
	cmd.Flags().StringVar(&tag, "tag", "", "the `REF` that the image has in FILE (default: that of --push, or docker.io/library/NAME:latest)")
	cmd.Flags().BoolVar(&insecure, "insecure", false, "allow a registry without TLS, and do not verify its certificate")
	cmd.Flags().StringVar(&ca, "ca", "", "trust the certificates in this `FILE` too, for the registry")
	cmd.Flags().StringVar(&platforms, "platform", "linux/amd64,linux/arm64", "the `PLATFORMS` of the image, with commas between them")
	cmd.Flags().BoolVar(&certificates, "ca-certificates", false, "add the root certificates that Mozilla trusts, for requests to servers outside of the cluster")
	return cmd
}
