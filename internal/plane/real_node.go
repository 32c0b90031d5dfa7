package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/yare-go/yare/internal/plane/console"
)

// checkRealNode returns an error if a real node is requested and cannot run. The program of the node checks everything
// that it needs of the machine. But its compilation takes minutes, so checkRealNode checks the most likely causes
// before.
func (o Options) checkRealNode() error {
	const advice = "or leave --real-node out for simulated nodes"
	switch {
	case !o.RealNode:
		return nil
	case o.Nodes > 0:
		return errors.New("a control plane has either simulated nodes or a real one: choose one of them")
	case o.NodeBinary != "" || o.Finder.environ().value(RealNode().Variable()) != "":
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

// nodeEvent is a line from the program of the real node. The other end is package control of the
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

// realNode is the process that runs the real node of a plane.
type realNode struct {
	child   *child
	console *console.Console
	// events receives the events prepared, ready and failed, for which startRealNode and join wait.
	events chan nodeEvent
	socket string
	// isReady is true after join. The end of a node that is not ready is an error of Start.
	isReady bool
}

// startRealNode starts the program of the real node, and adds to o what the control plane needs to
// know of the node.
func startRealNode(ctx context.Context, o *Options) (*realNode, error) {
	if o.NodeBinary == "" {
		finder := o.Finder
		finder.Module = RealNode()
		binary, err := finder.Find(ctx)
		if err != nil {
			return nil, err
		}
		o.NodeBinary = binary
	}
	args := []string{"up"}
	for _, image := range o.Images {
		path, err := filepath.Abs(image)
		if err != nil {
			return nil, err
		}
		args = append(args, "--load", path)
	}
	n := &realNode{console: o.Console, events: make(chan nodeEvent, 8)}
	c, err := startChild("the real node", "", o.NodeBinary, args, o.Log, o.Console, n.receiveLine)
	if err != nil {
		return nil, fmt.Errorf("start the real node %s: %w", o.NodeBinary, err)
	}
	n.child = c
	prepared, err := n.wait(ctx, "prepared")
	if err != nil {
		n.close()
		return nil, err
	}
	n.socket = prepared.Socket
	// The API server reaches Pods and Services by the network of the node. The last argument of a name wins, and
	// that may be an argument of the user.
	o.APIServerArgs = slices.Concat([]string{"--egress-selector-config-file="}, o.APIServerArgs, prepared.APIServerArgs)
	return n, nil
}

// receiveLine shows an event of the node, or passes it on to wait.
func (n *realNode) receiveLine(c *child, line []byte) {
	var e nodeEvent
	if !c.decode(line, &e) {
		return
	}
	switch e.Event {
	case "starting":
		c.startTask.Set("starting the real node: %s", e.Component)
	case "loaded":
		n.console.Printf("the real node has the image %s", strings.Join(e.Images, ", "))
	case "warning":
		n.console.Printf("%s", e.Error)
	case "exited":
		n.console.Printf("%s of the real node ended unexpectedly: %s (its log: %s); it is started again",
			e.Component, e.Error, e.Log)
	case "prepared", "ready", "failed":
		select {
		case n.events <- e:
		default: // nobody waits for an event of a node that is ready
		}
	}
}

// wait waits for an event of that name.
func (n *realNode) wait(ctx context.Context, name string) (nodeEvent, error) {
	e, err := waitFor(ctx, n.child, n.events)
	switch {
	case err != nil:
		return e, err
	case e.Event == name:
		return e, nil
	case e.Event == "failed":
		return e, fmt.Errorf("start the real node: %s", e.Error)
	default:
		return e, fmt.Errorf("start the real node %s: it reported %q in place of %q: build it from the same version of yare",
			n.child.binary, e.Event, name)
	}
}

// join lets the node join the cluster of a kubeconfig file, and waits until the node is ready.
func (n *realNode) join(ctx context.Context, kubeconfig string) error {
	line, err := json.Marshal(map[string]string{"do": "join", "kubeconfig": kubeconfig})
	if err != nil {
		return err
	}
	if _, err := n.child.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("start the real node: %w", err)
	}
	defer n.child.startTask.Done()
	_, err = n.wait(ctx, "ready")
	n.isReady = err == nil
	return err
}

// done returns a channel that is closed when the node has ended. The channel is nil without a node.
func (n *realNode) done() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.child.process.Done()
}

// err returns how the node ended.
func (n *realNode) err() error { return n.child.endError("the real node ended unexpectedly") }

// close ends the node and waits until all of it is gone. It prints why a node that was ready could not remove
// all of its parts. It may be called more than once, and without a node.
func (n *realNode) close() {
	if n == nil {
		return
	}
	n.child.end()
	if n.isReady && n.child.process.Err() != nil {
		n.console.Printf("%v", n.child.endError("the real node did not end well"))
	}
}
