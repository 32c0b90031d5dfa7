//go:build linux

// Package up runs a real node from start to end: it makes the namespaces and the link, gives images
// to the node, lets the node join a cluster, and leaves nothing behind.
package up

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/yare-go/yare/realnode/internal/cgroup"
	"github.com/yare-go/yare/realnode/internal/control"
	"github.com/yare-go/yare/realnode/internal/images"
	"github.com/yare-go/yare/realnode/internal/layout"
	"github.com/yare-go/yare/realnode/internal/network"
	"github.com/yare-go/yare/realnode/internal/node"
	"github.com/yare-go/yare/realnode/internal/pause"
	"github.com/yare-go/yare/realnode/internal/pki"
	"github.com/yare-go/yare/realnode/internal/programs"
	"github.com/yare-go/yare/realnode/internal/sandbox"
	"github.com/yare-go/yare/realnode/internal/slot"
)

const (
	// containerdTimeout bounds the start of containerd.
	containerdTimeout = time.Minute
	// endGrace is how long the node may take to end by itself. The node has nothing to save.
	endGrace = 2 * time.Second
)

// Main runs the command `up` and returns the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr *os.File) int {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	var imageFiles []string
	flags.Func("load", "tar `file` with an image for the node (repeatable)", func(name string) error {
		imageFiles = append(imageFiles, name)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a reader of our output that is gone must not keep us from cleaning up

	s := &session{
		output: control.NewWriter(stdout), stdout: stdout, stderr: stderr, imageFiles: imageFiles,
		joins: make(chan control.Request, 1),
	}
	// A read of standard input cannot be interrupted, so this goroutine ends with the process.
	go s.read(control.Requests(stdin), cancel)
	err := s.run(ctx)
	if err == nil {
		return 0
	}
	s.output.Write(control.Event{Event: control.Failed, Error: err.Error()})
	fmt.Fprintln(stderr, "realnode:", err)
	return 1
}

// errEnd is the cause of a context that ended because the caller needs the node no longer.
var errEnd = errors.New("asked to end")

// session is one run of a node.
type session struct {
	output         *control.Writer
	stdout, stderr *os.File
	// imageFiles are the tar files with images for the node.
	imageFiles []string
	// joins receives the request to join.
	joins chan control.Request
}

// read passes on the request to join. It ends the node at the end of the input.
func (s *session) read(requests <-chan control.Request, cancel context.CancelCauseFunc) {
	for request := range requests {
		if request.Do == control.Join {
			select {
			case s.joins <- request:
			default: // a node joins once
			}
		}
	}
	cancel(errEnd)
}

// run runs a node until ctx ends or the node fails.
func (s *session) run(ctx context.Context) (err error) {
	found, err := programs.Find()
	if err != nil {
		return err
	}
	for _, file := range s.imageFiles {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("load an image: %w", err)
		}
	}
	taken, err := slot.ClearAndTake(ctx, network.IsFree)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, taken.Release()) }()
	l := taken.Layout
	// The kubelet sets limits of the group before the first container makes it.
	if err := cgroup.Make(l.Cgroup()); err != nil {
		return err
	}
	if err := pki.Write(l, time.Now()); err != nil {
		return err
	}
	s.output.Write(control.Event{
		Event: control.Prepared, APIServerArgs: l.APIServerArgs(), Socket: l.Socket(),
		Node: layout.NodeName, Address: l.NodeAddress().String(),
	})
	err = s.runSandbox(ctx, l, found)
	if ctx.Err() != nil {
		return nil // asked to end: what went wrong on the way does not matter
	}
	return err
}

// errNodeEnded means that the processes of the node are gone. They have reported the cause.
var errNodeEnded = errors.New("the real node ended unexpectedly")

// runSandbox runs the node in its namespaces. When it returns, no process of the node is left.
func (s *session) runSandbox(ctx context.Context, l layout.Layout, found programs.Programs) error {
	input, requests, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	box, err := sandbox.Start(l, node.Command, input, s.stdout, s.stderr)
	_ = input.Close()
	if err != nil {
		_ = requests.Close()
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		<-box.Done()
		cancel(errNodeEnded)
	})
	defer watching.Wait()
	defer end(box, requests)

	hasServiceRoute, err := network.Connect(l, box.PID())
	if err != nil {
		return causeOr(ctx, err)
	}
	if !hasServiceRoute {
		s.output.Write(control.Event{Event: control.Warning, Error: fmt.Sprintf(
			"another route of this machine leads into %s, so this machine does not reach the cluster IPs of Services: "+
				"admission webhooks in Pods do not work; Pods reach Services as usual", layout.ServiceNet())})
	}
	toNode := control.NewWriter(requests)
	toNode.Write(control.Request{Do: control.Start})
	if err := s.loadImages(ctx, l, found); err != nil {
		return causeOr(ctx, err)
	}
	var join control.Request
	select {
	case join = <-s.joins:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c, err := joinCluster(ctx, l, join.Kubeconfig)
	if err != nil {
		return causeOr(ctx, err)
	}
	defer c.relay.Close()
	toNode.Write(control.Request{Do: control.Join})
	if err := c.waitReady(ctx, l); err != nil {
		return causeOr(ctx, err)
	}
	s.output.Write(control.Event{
		Event: control.Ready, Node: layout.NodeName, Address: l.NodeAddress().String(), Socket: l.Socket(),
	})
	<-ctx.Done()
	return context.Cause(ctx)
}

// end lets the node end, and kills it if it does not end in time.
func end(box *sandbox.Sandbox, requests io.Closer) {
	_ = requests.Close()
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-box.Done():
	case <-timer.C:
		box.Kill()
	}
}

// causeOr returns the cause with which ctx ended, or err if ctx has not ended.
func causeOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// loadImages waits for containerd and gives it the pause image and the images of the user.
func (s *session) loadImages(ctx context.Context, l layout.Layout, found programs.Programs) error {
	snapshotter, err := images.Snapshotter(l.Dir())
	if err != nil {
		return err
	}
	store := images.Store{Ctr: found.Ctr, Socket: l.Socket(), Snapshotter: snapshotter}
	startCtx, cancel := context.WithTimeout(ctx, containerdTimeout)
	defer cancel()
	if err := store.WaitReady(startCtx); err != nil {
		return fmt.Errorf("%w; the end of its log:\n%s", err, node.LogTail(l.LogFile("containerd")))
	}
	archive, err := pause.Archive(layout.PauseImage, runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.Path(layout.PauseArchive), archive, 0o600); err != nil {
		return fmt.Errorf("write the pause image: %w", err)
	}
	if _, err := store.Load(ctx, l.Path(layout.PauseArchive)); err != nil {
		return err
	}
	for _, file := range s.imageFiles {
		names, err := store.Load(ctx, file)
		if err != nil {
			return err
		}
		s.output.Write(control.Event{Event: control.Loaded, Images: names})
	}
	return nil
}
