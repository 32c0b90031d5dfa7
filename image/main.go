// Command image makes a container image of a Go program, without Docker. `yare image` builds and
// runs it.
//
// An image has one layer on an empty base: the program, and root certificates on request. The
// images of all platforms are in one index, with a bill of materials for each. The same commit, Go
// version and options give the same digest: every time stamp is the time of the commit, and nothing
// of this machine is in the image.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const usage = `usage: image --output=FILE | --push=REF [flags] DIR

yare image explains the flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the command line args, and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stderr, usage)
		return 0
	}
	if err == nil {
		err = makeImage(ctx, o, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "yare: %v\n", err)
		return 1
	}
	return 0
}

// options are the options of the command line.
type options struct {
	// dir is the folder of the main package.
	dir string
	// output names the file to write. It is empty if there is none.
	output string
	// push names the image to push. It is empty if there is none.
	push string
	// tag names the image in the file. It may be empty.
	tag string
	// insecure allows registries without TLS, and does not verify certificates.
	insecure bool
	// ca names a file of certificates to trust for registries. It may be empty.
	ca string
	// platforms are the platforms of the image.
	platforms []platform
	// provenance names the file for the provenance. It is empty if there is none.
	provenance string
	// certificates adds the root certificates to the image.
	certificates bool
}

// platform is a system that an image runs on. The operating system is always Linux.
type platform struct {
	// arch is the architecture, in the words of Go, which OCI uses too.
	arch string
}

func (p platform) String() string { return "linux/" + p.arch }

// parseOptions returns the options of a command line.
func parseOptions(args []string) (options, error) {
	var o options
	var platforms string
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.output, "output", "", "")
	flags.StringVar(&o.push, "push", "", "")
	flags.StringVar(&o.tag, "tag", "", "")
	flags.BoolVar(&o.insecure, "insecure", false, "")
	flags.StringVar(&o.ca, "ca", "", "")
	flags.StringVar(&platforms, "platform", "linux/amd64,linux/arm64", "")
	flags.StringVar(&o.provenance, "provenance", "", "")
	flags.BoolVar(&o.certificates, "ca-certificates", false, "")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() != 1 {
		return o, errors.New("name one folder, that of the main package")
	}
	o.dir = flags.Arg(0)
	switch {
	case o.output == "" && o.push == "":
		return o, errors.New("name where the image goes: -o FILE.tar writes a file, and --push REF pushes to a registry")
	case o.push != "" && o.tag != "":
		return o, errors.New("--push names the image: leave out --tag")
	case o.push == "" && (o.insecure || o.ca != ""):
		return o, errors.New("--insecure and --ca are about a registry: add --push REF, or leave them out")
	case o.insecure && o.ca != "":
		return o, errors.New("--insecure verifies no certificate: leave out --insecure or --ca")
	}
	if info, err := os.Stat(o.dir); err != nil || !info.IsDir() {
		return o, fmt.Errorf("%s is no folder: name the folder of the main package", o.dir)
	}
	for text := range strings.SplitSeq(platforms, ",") {
		p, err := parsePlatform(text)
		if err != nil {
			return o, err
		}
		if slices.Contains(o.platforms, p) {
			return o, fmt.Errorf("--platform has %s twice: leave one of them out", p)
		}
		o.platforms = append(o.platforms, p)
	}
	return o, nil
}

// parsePlatform returns the platform of a text such as linux/arm64.
func parsePlatform(text string) (platform, error) {
	system, arch, _ := strings.Cut(strings.TrimSpace(text), "/")
	if system != "linux" || arch == "" || strings.Contains(arch, "/") {
		return platform{}, fmt.Errorf(
			"the platform %q is not valid: write linux/amd64 or linux/arm64, or both with a comma between them", text)
	}
	return platform{arch: arch}, nil
}

// makeImage builds the programs, makes the image of them, and writes and pushes it. It prints the
// name of the image by digest and its size.
func makeImage(ctx context.Context, o options, stdout, stderr io.Writer) error {
	// A wrong name of the image, and a wrong file of certificates, are reported before the program
	// is compiled.
	pusher, err := newPusher(o)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "yare-image-")
	if err != nil {
		return fmt.Errorf("make a folder for the binaries: %w", err)
	}
	defer os.RemoveAll(scratch)
	var binaries []binary
	for _, p := range o.platforms {
		b, err := build(ctx, o.dir, p, scratch)
		if err != nil {
			return err
		}
		binaries = append(binaries, b)
	}
	tag, err := nameOf(o, binaries[0].name)
	if err != nil {
		return err
	}
	index, err := assemble(binaries, o.certificates, stderr)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	folder := filepath.Join(scratch, "layout")
	size, err := writeLayout(folder, familiarName(tag), index)
	if err != nil {
		return err
	}
	if o.output != "" {
		docker, err := dockerManifest(familiarName(tag), index)
		if err != nil {
			return err
		}
		if err := writeArchive(o.output, folder, docker); err != nil {
			return err
		}
	}
	if o.provenance != "" {
		if err := writeProvenance(o.provenance, newProvenance(binaries, o.certificates)); err != nil {
			return fmt.Errorf("write the provenance: %w", err)
		}
	}
	if o.push != "" {
		if err := pusher.push(ctx, tag, index); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "%s@%s %d\n", familiarName(tag.Context()), digest, size)
	return err
}
