//go:build linux

// Package images gives images in tar files to the containerd of a node.
package images

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/yare-go/yare/realnode/internal/programs"
)

// Store is the image store of one containerd.
type Store struct {
	// Ctr is the path of containerd's client.
	Ctr string
	// Socket is the path of containerd's socket.
	Socket string
	// Snapshotter unpacks images.
	Snapshotter string
}

// namespace is the namespace of containerd that belongs to Kubernetes.
const namespace = "k8s.io"

// WaitReady waits until containerd answers.
func (s Store) WaitReady(ctx context.Context) error {
	for {
		_, err := s.run(ctx, "version")
		if err == nil {
			return nil
		}
		const interval = 50 * time.Millisecond
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for containerd: %w (last: %w)", context.Cause(ctx), err)
		case <-time.After(interval):
		}
	}
}

// Load imports the images of a tar file, and returns their names. An image can be used by its tag
// and by its digest.
func (s Store) Load(ctx context.Context, file string) ([]string, error) {
	before, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.run(ctx, "images", "import", "--snapshotter", s.Snapshotter, file); err != nil {
		return nil, fmt.Errorf(
			"load %s: %w: it must be the tar file of an image for this machine, such as `yare image -o` writes", file, err)
	}
	after, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, digest := range after {
		if before[name] == digest || strings.HasPrefix(name, "sha256:") {
			continue // containerd itself adds names without a repository
		}
		names = append(names, name)
		for _, alias := range aliases(name, digest) {
			if after[alias] == digest {
				continue
			}
			if _, err := s.run(ctx, "images", "tag", "--force", name, alias); err != nil {
				return nil, fmt.Errorf("name the image %s: %w", alias, err)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// list returns the digests of all images by name.
func (s Store) list(ctx context.Context) (map[string]string, error) {
	out, err := s.run(ctx, "images", "list")
	if err != nil {
		return nil, fmt.Errorf("list the images of the node: %w", err)
	}
	return parseList(out), nil
}

// parseList reads the table of `ctr images list`.
func parseList(table string) map[string]string {
	images := map[string]string{}
	for line := range strings.Lines(table) {
		// REF TYPE DIGEST SIZE PLATFORMS LABELS
		fields := strings.Fields(line)
		if len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			images[fields[0]] = fields[2]
		}
	}
	return images
}

// aliases returns further names for an image, by which Pods may refer to it: the name in full, as the
// kubelet asks for it, and that name with the digest in place of the tag.
func aliases(name, imageDigest string) []string {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil // no Pod can refer to it
	}
	if _, hasDigest := full.(reference.Digested); hasDigest {
		return nil
	}
	byDigest, err := reference.WithDigest(reference.TrimNamed(full), digest.Digest(imageDigest))
	if err != nil {
		return []string{full.String()}
	}
	return []string{full.String(), byDigest.String()}
}

func (s Store) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.Ctr, append([]string{"--address", s.Socket, "--namespace", namespace}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			err = errors.New(text)
		}
		return "", fmt.Errorf("ctr %s: %w", args[0], err)
	}
	return stdout.String(), nil
}

// Snapshotter returns the name of the snapshotter for a folder: an overlay file system cannot hold
// the files of another one.
func Snapshotter(dir string) (string, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("read the file system of %s: %w", dir, err)
	}
	const overlay = 0x794c7630
	if stat.Type == overlay {
		return "native", nil
	}
	return "overlayfs", nil
}

// Main runs the command `load` and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	socket := flags.String("address", "", "`socket` of the node's containerd (required)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := load(ctx, *socket, flags.Args(), stdout); err != nil {
		fmt.Fprintln(stderr, "realnode:", err)
		return 1
	}
	return 0
}

func load(ctx context.Context, socket string, files []string, stdout io.Writer) error {
	if socket == "" || len(files) == 0 {
		return errors.New("load needs --address and the names of tar files")
	}
	found, err := programs.Find()
	if err != nil {
		return err
	}
	snapshotter, err := Snapshotter(filepath.Dir(socket))
	if err != nil {
		return err
	}
	store := Store{Ctr: found.Ctr, Socket: socket, Snapshotter: snapshotter}
	for _, file := range files {
		names, err := store.Load(ctx, file)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			fmt.Fprintf(stdout, "%s: the node has its images already\n", file)
		}
		for _, name := range names {
			fmt.Fprintf(stdout, "loaded %s\n", name)
		}
	}
	return nil
}
