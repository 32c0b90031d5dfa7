// Package plane finds, builds, keeps, starts and controls the embedded control plane: one
// binary, built from the module github.com/yare-go/yare/controlplane, that holds etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, a simulated kubelet and kubectl.
//
// The binary is not part of this module, so that nobody who imports yare inherits
// k8s.io/kubernetes. A [Finder] builds the binary once with the user's own go command, and keeps the
// binary in the user's cache folder. [Start] runs the binary, and exchanges lines with it over its
// standard input and output. A Finder also builds and keeps the program of each other [Module].
package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
)

// Options describe the control plane to start. All fields are optional.
type Options struct {
	// Finder finds the binary, if Binary does not name it.
	Finder Finder
	Binary string
	// Kubeconfig is the path of the kubeconfig file, which exists while the cluster can be used.
	// The default is a file in the plane's own folder.
	Kubeconfig string
	// Nodes is the number of simulated nodes. 0 means the binary's default.
	Nodes int
	// RealNode puts a real node in the place of the simulated nodes. A real node needs Linux, root,
	// and the installed programs containerd, runc, nft and the CNI plugins.
	RealNode bool
	// NodeBinary names the binary of the real node. The default is the binary that Finder finds.
	NodeBinary string
	// Images are tar files with images for the real node.
	Images []string
	// Emulate is the minor version of Kubernetes whose APIs and feature gates the control plane has. It is empty for its
	// own.
	Emulate string
	// Etcd is the URL of another program that serves the API of etcd. It is empty for an etcd of the plane.
	Etcd string
	// APIServerArgs are more arguments for kube-apiserver.
	APIServerArgs []string
	// Title is the name of this plane in the list of the user's planes ("yare dev ./book"), in
	// which `yare kubectl` finds it. A plane without a title is not listed.
	Title string
	// Verbose makes the control plane write its own log to Log.
	Verbose bool
	// Log receives the control plane's standard error. It may be nil.
	Log io.Writer
	// Console shows progress and unexpected ends. It may be nil.
	Console *console.Console
}

// Plane is a running control plane.
type Plane struct {
	child   *child
	control *control
	// node is nil if the nodes are simulated.
	node    *realNode
	console *console.Console
	// startResult receives the first event ready or failed.
	startResult chan message
	// closing is closed by Close.
	closing   chan struct{}
	closeOnce sync.Once
	// entry is the entry in the list of running planes. It is nil if the plane is not listed.
	entry *listEntry
	// ready is the event ready.
	ready message
	// lastStartText is the end of the text about the progress: " (last time 3.2s)". It is empty if no duration is known.
	lastStartText string
}

// startStep is the name of the start of a control plane in the file of durations.
const startStep = "start the control plane"

// Start starts a control plane and waits until it can be used. The end of ctx ends only the wait. The plane runs until
// Close, or until this process ends.
func Start(ctx context.Context, o Options) (*Plane, error) {
	if o.Finder.Console == nil {
		o.Finder.Console = o.Console
	}
	if err := errors.Join(checkMinorOf(&o), o.checkRealNode()); err != nil {
		return nil, err
	}
	if o.Binary == "" {
		binary, err := o.Finder.Find(ctx)
		if err != nil {
			return nil, err
		}
		o.Binary = binary
	}
	var node *realNode
	if o.RealNode {
		var err error
		if node, err = startRealNode(ctx, &o); err != nil {
			return nil, err
		}
	}
	p, err := startProcess(o)
	if err != nil {
		node.close()
		return nil, fmt.Errorf("start the control plane %s: %w", o.Binary, err)
	}
	p.node = node
	err = p.waitReady(ctx)
	if err == nil && node != nil {
		err = node.join(ctx, p.Kubeconfig())
	}
	if err != nil {
		if free, known := freeBytes(os.TempDir()); known && ctx.Err() == nil {
			err = explainFullDisk(err, os.TempDir(), free)
		}
		p.Close()
		return nil, err
	}
	if o.Title != "" {
		if p.entry, err = p.register(o.Title, o.Finder.Dir); err != nil {
			// The cluster can be used without the entry.
			o.Console.Printf("`yare kubectl` will not find this control plane by itself: %v", err)
		}
	}
	return p, nil
}

// startProcess starts the process of a control plane.
func startProcess(o Options) (*Plane, error) {
	args := []string{"up", "--control"}
	if o.Kubeconfig != "" {
		name, err := filepath.Abs(o.Kubeconfig)
		if err != nil {
			return nil, err
		}
		args = append(args, "--kubeconfig", name)
	}
	if o.Nodes > 0 || o.RealNode {
		args = append(args, "--nodes", strconv.Itoa(o.Nodes))
	}
	if o.Emulate != "" {
		args = append(args, "--emulate", o.Emulate)
	}
	if o.Etcd != "" {
		args = append(args, "--etcd", o.Etcd)
	}
	for _, arg := range o.APIServerArgs {
		args = append(args, "--apiserver-arg", arg)
	}
	if o.Verbose {
		args = append(args, "-v")
	}
	p := &Plane{
		control: newControl(), console: o.Console, startResult: make(chan message, 1), closing: make(chan struct{}),
	}
	if last := durations.Default().Last(startStep); last > 0 && o.Console != nil {
		p.lastStartText = " (last time " + console.Duration(last) + ")"
	}
	c, err := startChild("the control plane", p.lastStartText, o.Binary, args, o.Log, o.Console, p.receiveLine)
	if err != nil {
		return nil, err
	}
	p.child = c
	return p, nil
}

// receiveLine passes on an answer of the control plane, and shows or keeps an event.
func (p *Plane) receiveLine(c *child, line []byte) {
	var m message
	if !c.decode(line, &m) {
		return
	}
	switch m.Event {
	case "":
		p.control.deliverAnswer(m)
	case "starting":
		c.startTask.Set("starting the control plane: %s%s", m.Component, p.lastStartText)
	case "ready", "failed":
		select {
		case p.startResult <- m:
		default: // the plane was ready before: its end closes Done
		}
	case "exited":
		text := m.Component + " ended unexpectedly"
		if m.Error != "" {
			text += ": " + m.Error
		}
		if m.Log != "" {
			text += " (its log: " + m.Log + ")"
		}
		p.console.Printf("%s; it is started again", text)
	}
}

// waitReady waits until the control plane can be used.
func (p *Plane) waitReady(ctx context.Context) error {
	defer p.child.startTask.Done()
	m, err := waitFor(ctx, p.child, p.startResult)
	if err != nil {
		return err
	}
	if m.Event == "ready" {
		p.ready = m
		if p.console != nil {
			durations.Default().Record(startStep, p.StartDuration())
		}
		return nil
	}
	text := m.Error
	if m.Log != "" {
		text += " (log: " + m.Log + ")"
	}
	if output := p.child.stderr.String(); output != "" {
		text += "\n" + output
	}
	return fmt.Errorf("start the control plane: %s", text)
}

// register adds p to the list of running planes.
func (p *Plane) register(title, operatorDir string) (*listEntry, error) {
	belongsTo, err := projects(".", operatorDir)
	if err != nil {
		return nil, err
	}
	r := Running{
		Pid:        os.Getpid(),
		Title:      title,
		Kubeconfig: p.Kubeconfig(),
		Binary:     p.Binary(),
		Started:    time.Now().Truncate(time.Second),
		Projects:   belongsTo,
	}
	if p.node != nil {
		r.Node = &RunningNode{Binary: p.node.child.binary, Socket: p.node.socket}
	}
	return register(p.child.process.Pid(), r)
}

// Kubeconfig returns the path of the kubeconfig file.
func (p *Plane) Kubeconfig() string { return p.ready.Kubeconfig }

// Server returns the URL of the API server.
func (p *Plane) Server() string { return p.ready.Server }

// Dir returns the plane's temporary folder, with the logs of its components.
func (p *Plane) Dir() string { return p.ready.Dir }

// Binary returns the path of the control plane binary, which is a kubectl too.
func (p *Plane) Binary() string { return p.child.binary }

// StartDuration returns how long the plane took to become ready, by its own clock.
func (p *Plane) StartDuration() time.Duration {
	return time.Duration(p.ready.Seconds * float64(time.Second))
}

// Pids returns the process IDs of the components at the time when the plane became ready.
func (p *Plane) Pids() map[string]int { return p.ready.Pids }

// Stop ends a component as an administrator would. The component stays down until StartComponent.
func (p *Plane) Stop(ctx context.Context, component string) error {
	return p.sendCommand(ctx, "stop", component)
}

// Kill ends a component as a crash would (kill -9). The component stays down until StartComponent.
func (p *Plane) Kill(ctx context.Context, component string) error {
	return p.sendCommand(ctx, "kill", component)
}

// StartComponent starts a component that was stopped or killed.
func (p *Plane) StartComponent(ctx context.Context, component string) error {
	return p.sendCommand(ctx, "start", component)
}

// Restart stops a component and starts it again.
func (p *Plane) Restart(ctx context.Context, component string) error {
	return p.sendCommand(ctx, "restart", component)
}

// Pause freezes a component: it keeps its connections and answers nothing.
func (p *Plane) Pause(ctx context.Context, component string) error {
	return p.sendCommand(ctx, "pause", component)
}

// Resume ends a Pause.
func (p *Plane) Resume(ctx context.Context, component string) error {
	return p.sendCommand(ctx, "resume", component)
}

// Compact drops etcd's history, and returns the revision up to which the history was dropped.
func (p *Plane) Compact(ctx context.Context) (int64, error) {
	m, err := p.control.call(ctx, p.child, "compact", "")
	return m.Revision, err
}

// sendCommand sends a command about a component, and waits until the command is carried out.
func (p *Plane) sendCommand(ctx context.Context, verb, component string) error {
	_, err := p.control.call(ctx, p.child, verb, component)
	return err
}

// Done returns a channel that is closed when the control plane has ended.
func (p *Plane) Done() <-chan struct{} { return p.child.process.Done() }

// NodeDone returns a channel that is closed when the real node has ended. The channel is nil, so that
// nothing is ever received from it, if the nodes are simulated.
func (p *Plane) NodeDone() <-chan struct{} { return p.node.done() }

// NodeErr returns why the real node ended. It must not be called before NodeDone is closed.
func (p *Plane) NodeErr() error { return p.node.err() }

// Err returns why the control plane ended. It returns nil while the plane runs and after Close.
func (p *Plane) Err() error {
	select {
	case <-p.child.process.Done():
	default:
		return nil
	}
	select {
	case <-p.closing:
		return nil
	default:
	}
	return p.child.endError("the control plane ended unexpectedly")
}

// Close ends the control plane and waits until all of it is gone. It may be called more
// than once.
func (p *Plane) Close() {
	p.closeOnce.Do(func() {
		close(p.closing)
		p.entry.remove()
		task := p.console.Task()
		defer task.Done()
		task.Set("stopping the control plane")
		p.node.close()
		p.child.end()
	})
	<-p.Done()
}

// minFreeBytes is what the data of a control plane needs at its start: etcd reserves two files of 64 MB.
const minFreeBytes = 200 << 20

// freeBytes returns how many bytes a user may write to the disk of a folder. known is false if the system does not say.
func freeBytes(folder string) (free uint64, known bool) {
	var stat syscall.Statfs_t
	if syscall.Statfs(folder, &stat) != nil {
		return 0, false
	}
	return uint64(stat.Bavail) * uint64(stat.Bsize), true //nolint:unconvert // the types differ between Linux and macOS
}

// explainFullDisk returns an error that names the full disk, if the control plane could not start and the folder of its
// data has little room. Otherwise it returns err. The stacks of a program that panics on a full disk are left out.
func explainFullDisk(err error, folder string, free uint64) error {
	if free >= minFreeBytes {
		return err
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	first, _, _ = strings.Cut(first, " (log: ")
	return fmt.Errorf("the folder %s has %d MB free, and a control plane needs %d MB for its data: make room there, or set TMPDIR to a folder with more room: %s",
		folder, free>>20, minFreeBytes>>20, first)
}
