package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/filelock"
	"github.com/yare-go/yare/internal/plane/process"
)

// RealNode returns the program that runs a real node beside the control plane.
func RealNode() Program {
	return Program{
		Folder:     "realnode",
		Title:      "the real node",
		FirstBuild: "(the kubelet and kube-proxy): this takes minutes, and happens once",
	}
}

// checkRealNode returns an error if a real node is requested that cannot run. The program of the node
// checks all that it needs of the machine, but compiling the programs takes minutes, so the most
// likely causes are checked before.
func (o Options) checkRealNode() error {
	const advice = "or leave --real-node out for simulated nodes"
	switch {
	case !o.RealNode:
		return nil
	case o.Nodes > 0:
		return errors.New("a control plane has either simulated nodes or a real one: choose one of them")
	case o.NodeBinary != "" || o.Finder.getenv(RealNode().Variable()) != "":
		return nil
	case runtime.GOOS != "linux":
		return errors.New("a real node needs Linux: run yare on Linux, " + advice)
	case os.Geteuid() != 0:
		return errors.New("a real node needs root: run yare as root, " + advice)
	}
	if _, err := exec.LookPath("containerd"); err != nil {
		return errors.New("a real node needs containerd, which was not found in PATH: install it " +
			"(Debian and Ubuntu: apt-get install containerd nftables containernetworking-plugins), " + advice)
	}
	return nil
}

// A nodeEvent is a line from the program of the real node. The other end is package control of the
// module realnode.
type nodeEvent struct {
	Event         string   `json:"event"`
	Component     string   `json:"component"`
	APIServerArgs []string `json:"apiServerArgs"`
	Socket        string   `json:"socket"`
	Images        []string `json:"images"`
	Error         string   `json:"error"`
	Log           string   `json:"log"`
}

// A realNode is the process that runs the real node of a plane.
type realNode struct {
	binary  string
	process *process.Process
	in      io.WriteCloser
	console *console.Console
	booting *console.Task // until the node is ready
	stderr  *tail
	events  chan nodeEvent // receives the events that prepare and join wait for
	inUse   *os.File       // its shared lock keeps the binary in the cache
	socket  string
}

// startRealNode starts the program of the real node, and adds to o what the control plane needs to
// know of the node.
func startRealNode(ctx context.Context, o *Options) (*realNode, error) {
	if o.NodeBinary == "" {
		finder := o.Finder
		finder.Program = RealNode()
		binary, err := finder.Find(ctx)
		if err != nil {
			return nil, err
		}
		o.NodeBinary = binary
	}
	n, err := launchNode(o)
	if err != nil {
		return nil, fmt.Errorf("starting the real node %s: %w", o.NodeBinary, err)
	}
	prepared, err := n.wait(ctx, "prepared")
	if err != nil {
		n.close()
		return nil, err
	}
	n.socket = prepared.Socket
	o.APIServerArgs = append(o.APIServerArgs, prepared.APIServerArgs...)
	return n, nil
}

func launchNode(o *Options) (*realNode, error) {
	args := []string{"up"}
	for _, image := range o.Images {
		path, err := filepath.Abs(image)
		if err != nil {
			return nil, err
		}
		args = append(args, "--load", path)
	}
	cmd := exec.Command(o.NodeBinary, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	n := &realNode{
		binary:  o.NodeBinary,
		in:      in,
		console: o.Console,
		booting: o.Console.Task(),
		stderr:  &tail{next: o.Log},
		events:  make(chan nodeEvent, 8),
	}
	n.booting.Set("starting the real node")
	cmd.Stdout = &lineWriter{handle: n.handleLine}
	cmd.Stderr = n.stderr
	if n.inUse, err = os.Open(o.NodeBinary); err != nil {
		n.booting.Done()
		return nil, err
	}
	// An error does not matter: a file that cannot be locked is not in the cache.
	_ = filelock.Try(n.inUse, filelock.Shared)
	// The node ends at the end of its input, which comes also when this process dies.
	if n.process, err = process.Start(cmd, 0); err != nil {
		_ = n.inUse.Close()
		n.booting.Done()
		return nil, err
	}
	return n, nil
}

// handleLine handles a line that the node wrote.
func (n *realNode) handleLine(line []byte) {
	var e nodeEvent
	if err := json.Unmarshal(line, &e); err != nil {
		_, _ = fmt.Fprintf(n.stderr, "%s\n", line)
		return
	}
	switch e.Event {
	case "starting":
		n.booting.Set("starting the real node: %s", e.Component)
	case "loaded":
		n.console.Printf("the real node has the image %s", strings.Join(e.Images, ", "))
	case "warning":
		n.console.Printf("%s", e.Error)
	case "exited":
		n.console.Printf("%s of the real node ended unexpectedly: %s (its log: %s); it is started again", e.Component, e.Error, e.Log)
	case "prepared", "ready", "failed":
		select {
		case n.events <- e:
		default: // nobody waits for an event of a node that is ready
		}
	}
}

// wait waits for an event of that name.
func (n *realNode) wait(ctx context.Context, name string) (nodeEvent, error) {
	select {
	case e := <-n.events:
		return n.checkEvent(e, name)
	case <-n.process.Done():
	case <-ctx.Done():
		return nodeEvent{}, fmt.Errorf("waiting for the real node: %w", context.Cause(ctx))
	}
	select {
	case e := <-n.events: // it reported the cause before it ended
		return n.checkEvent(e, name)
	default:
		return nodeEvent{}, n.err()
	}
}

func (n *realNode) checkEvent(e nodeEvent, name string) (nodeEvent, error) {
	switch e.Event {
	case name:
		return e, nil
	case "failed":
		return e, fmt.Errorf("starting the real node: %s", e.Error)
	default:
		return e, fmt.Errorf("starting the real node %s: it reported %q in place of %q: build it from the same version of yare", n.binary, e.Event, name)
	}
}

// join lets the node join the cluster of a kubeconfig file, and waits until the node is ready.
func (n *realNode) join(ctx context.Context, kubeconfig string) error {
	line, err := json.Marshal(map[string]string{"do": "join", "kubeconfig": kubeconfig})
	if err != nil {
		return err
	}
	if _, err := n.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("starting the real node: %w", err)
	}
	defer n.booting.Done()
	_, err = n.wait(ctx, "ready")
	return err
}

// done returns a channel that is closed when the node has ended. It is nil without a node.
func (n *realNode) done() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.process.Done()
}

// err returns how the node ended.
func (n *realNode) err() error {
	text := "the real node ended unexpectedly"
	if err := n.process.Err(); err != nil {
		text += " (" + err.Error() + ")"
	}
	if said := n.stderr.String(); said != "" {
		text += ":\n" + said
	}
	return errors.New(text)
}

// close ends the node and waits until all of it is gone. It may be called more than once, and
// without a node.
func (n *realNode) close() {
	if n == nil {
		return
	}
	n.booting.Done()
	// The node ends at the end of its input. If it no longer reads, it gets a signal.
	_ = n.in.Close()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case <-n.process.Done():
	case <-timer.C:
		n.process.Stop(syscall.SIGTERM, false, 10*time.Second)
	}
	_ = n.inUse.Close()
}
