package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
	"github.com/yare-go/yare/internal/plane/process"
)

func newImage(out *console.Console) *cobra.Command {
	var output, push, tag, ca, platforms, provenance string
	var insecure, certificates bool
	cmd := &cobra.Command{
		Use:   "image DIR",
		Short: "Make a container image of the operator in DIR, without Docker",
		Long: `image compiles the operator in DIR, a Go main package, for linux/amd64 and linux/arm64, and
makes one image of both. The image has one layer on an empty base: the binary /NAME, which runs as
the user 65532, and the licence texts of its modules in /licences. Its bill of materials (SPDX) is in the index beside it.

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
				return errors.New(
					"name one folder, that of the operator's main package: yare image -o FILE DIR, or yare image --push REF DIR")
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
			flags := []string{
				"--output=" + output, "--push=" + push, "--tag=" + tag, "--ca=" + ca, "--platform=" + platforms,
				"--insecure=" + strconv.FormatBool(insecure), "--ca-certificates=" + strconv.FormatBool(certificates),
				"--provenance=" + provenance, "--", args[0],
			}
			return runImageBuilder(cmd.Context(), out, args[0], platforms, exec.Command(binary, flags...))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the image to this `FILE`, a tar archive")
	cmd.Flags().StringVar(&push, "push", "",
		"push the image to a registry as `REF`, such as registry.example.com/webapp:v1")
	cmd.Flags().StringVar(&tag, "tag", "",
		"the `REF` that the image has in FILE (default: that of --push, or docker.io/library/NAME:latest)")
	cmd.Flags().BoolVar(&insecure, "insecure", false, "allow a registry without TLS, and do not verify its certificate")
	cmd.Flags().StringVar(&ca, "ca", "", "trust the certificates in this `FILE` too, for the registry")
	cmd.Flags().StringVar(&platforms, "platform", "linux/amd64,linux/arm64",
		"the `PLATFORMS` of the image, with commas between them")
	cmd.Flags().StringVar(&provenance, "provenance", "",
		"write to this `FILE` how the image was made (SLSA provenance 1), for cosign attest")
	cmd.Flags().BoolVar(&certificates, "ca-certificates", false,
		"add the root certificates that Mozilla trusts, for requests to servers outside of the cluster")
	return cmd
}

// runImageBuilder runs the builder of images for an operator in dir. Meanwhile it shows how long the builder takes, and
// how long it took the last time. The output of the builder is written when the builder has ended. An error of the
// builder has the exit status of the builder.
func runImageBuilder(ctx context.Context, out *console.Console, dir, platforms string, builder *exec.Cmd) error {
	last, step, began := durations.Default(), "image "+platforms+" "+dir, time.Now()
	if path, err := filepath.Abs(dir); err == nil {
		step = "image " + platforms + " " + path
	}
	var image, notes bytes.Buffer
	builder.Stdout, builder.Stderr = &image, &notes
	stop := last.Show(out, step, "making the image of "+dir)
	err := process.Run(ctx, builder)
	stop()
	if err == nil {
		last.Record(step, time.Since(began))
		_, err = os.Stderr.Write(notes.Bytes())
	} else if ctx.Err() != nil {
		err = errors.New("interrupted: the image is not complete")
	} else if builder.ProcessState == nil {
		err = fmt.Errorf("run %s: %w", builder.Path, err)
	} else {
		err = builderError{
			text: strings.TrimPrefix(strings.TrimSpace(notes.String()), "yare: "), status: builder.ProcessState.ExitCode(),
		}
	}
	_, writeErr := os.Stdout.Write(image.Bytes())
	return errors.Join(err, writeErr)
}

// builderError is what the builder of images has written about its failure, with its exit status.
type builderError struct {
	text   string
	status int
}

func (e builderError) Error() string {
	return cmp.Or(e.text, fmt.Sprintf("the builder of images ended with the status %d", e.status))
}

// ExitStatus returns the exit status of the builder. It is 1 if a signal has ended the builder.
func (e builderError) ExitStatus() int { return max(e.status, 1) }
