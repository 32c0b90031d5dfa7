// Package supervise keeps the components of a control plane running, and stops, kills,
// pauses and starts them on command.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yare-go/yare/controlplane/internal/process"
)

// Verb is a command to a component.
type Verb string

// The verbs. A component that was stopped or killed stays down until it is started.
const (
	Start   Verb = "start"
	Stop    Verb = "stop"
	Kill    Verb = "kill"
	Restart Verb = "restart"
	Pause   Verb = "pause"
	Resume  Verb = "resume"

	// refresh restarts a component that should run and is not paused. It is not for users.
	refresh Verb = "refresh"
)

// IsValid reports whether v is one of the verbs for users.
func (v Verb) IsValid() bool {
	switch v {
	case Start, Stop, Kill, Restart, Pause, Resume:
		return true
	}
	return false
}

const (
	// stopGrace is how long a component may take to end in good order when it is stopped by name.
	stopGrace = 5 * time.Second
	// startTimeout is how long a component may take until it is ready. On a busy machine an API server takes a minute.
	startTimeout = 2 * time.Minute
	// tailLines is how many lines of a log an error shows.
	tailLines = 20
)

// Spec describes a component.
type Spec struct {
	Name    string
	Process process.Spec
	// Ready blocks until the component does its work. It is called after each start with a
	// context that ends when the component does. If Ready is nil, the component itself reports that.
	Ready func(context.Context) error
}

// ExitError is the error of a component that ended by itself.
type ExitError struct {
	Component string
	Cause     error
	// Log holds its last lines.
	Log string
	// PortTaken is true when, by its log, the component's port was in use.
	PortTaken bool
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended: %v", e.Component, e.Cause)
}

func (e *ExitError) Unwrap() error { return e.Cause }

// Component is one supervised component of a control plane. Its methods may be called from any goroutine.
type Component struct {
	spec     Spec
	launcher *process.Launcher
	// reportExit is called at each unexpected end.
	reportExit func(*ExitError)
	// wake receives a value when there may be commands.
	wake chan struct{}

	mu sync.Mutex
	// commands holds the commands in the order in which they came.
	commands []command
	// isEnded is true when no command is carried out any more.
	isEnded bool
}

type command struct {
	verb   Verb
	answer func(pid int, err error)
}

// NewComponent returns a component that is not running. Run calls reportExit whenever the component ends by
// itself, before the component is restarted.
func NewComponent(spec Spec, launcher *process.Launcher, reportExit func(*ExitError)) *Component {
	return &Component{
		spec: spec, launcher: launcher, reportExit: reportExit,
		wake: make(chan struct{}, 1),
	}
}

// Name returns the component's name.
func (c *Component) Name() string { return c.spec.Name }

// Enqueue adds a command. Commands are carried out one after the other, in the order in which
// they were added. When the command was carried out, answer is called once, with the process
// ID if the component then runs. After the end of Run it is called with an error.
func (c *Component) Enqueue(verb Verb, answer func(pid int, err error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isEnded {
		answer(0, c.unsupervised())
		return
	}
	c.commands = append(c.commands, command{verb, answer})
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// dequeue removes and returns the oldest command.
func (c *Component) dequeue() (next command, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.commands) == 0 {
		return command{}, false
	}
	next, c.commands = c.commands[0], c.commands[1:]
	return next, true
}

// rejectCommands answers all commands that were not carried out, and all later ones, with an
// error.
func (c *Component) rejectCommands() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isEnded = true
	for _, next := range c.commands {
		next.answer(0, c.unsupervised())
	}
	c.commands = nil
}

func (c *Component) unsupervised() error {
	return fmt.Errorf("%s is no longer supervised", c.spec.Name)
}

// Execute enqueues a command and waits until it is carried out.
func (c *Component) Execute(ctx context.Context, verb Verb) (pid int, err error) {
	type result struct {
		pid int
		err error
	}
	results := make(chan result, 1)
	c.Enqueue(verb, func(pid int, err error) { results <- result{pid, err} })
	select {
	case r := <-results:
		return r.pid, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Refresh restarts the component if it should run, and returns when it is ready again.
func (c *Component) Refresh(ctx context.Context) error {
	_, err := c.Execute(ctx, refresh)
	return err
}

// Run carries out commands and restarts the component when it ends by itself. When ctx ends, Run
// ends the component within the grace period and returns nil. It returns an error when the component
// keeps ending without having been ready for a while.
func (c *Component) Run(ctx context.Context, grace time.Duration) error {
	r := &run{Component: c}
	defer r.finish(grace)
	for {
		if err := r.step(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}
	}
}
