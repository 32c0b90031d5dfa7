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

// Verb is a command to a member.
type Verb string

// The verbs. A member that was stopped or killed stays down until it is started.
const (
	Start   Verb = "start"
	Stop    Verb = "stop"
	Kill    Verb = "kill"
	Restart Verb = "restart"
	Pause   Verb = "pause"
	Resume  Verb = "resume"

	// refresh restarts a member that should run and is not paused. It is not for users.
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
	// stopGrace is how long a member may take to end in good order when it is stopped by name.
	stopGrace = 5 * time.Second
	// startTimeout is how long a member may take until it is ready.
	startTimeout = 60 * time.Second
	// tailLines is how many lines of a log an error shows.
	tailLines = 20
)

// Spec describes a member.
type Spec struct {
	Name    string
	Process process.Spec
	// Ready blocks until the member does its work. It is called after each start with a
	// context that ends when the member does. If Ready is nil, the member itself reports that.
	Ready func(context.Context) error
}

// ExitError is the error of a member that ended by itself.
type ExitError struct {
	Member string
	Cause  error
	Log    string // its last lines
	// PortTaken is true when, by its log, the member's port was in use.
	PortTaken bool
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended: %v", e.Member, e.Cause)
}

func (e *ExitError) Unwrap() error { return e.Cause }

// Member is one supervised component. Its methods may be called from any goroutine.
type Member struct {
	spec     Spec
	launcher *process.Launcher
	exited   func(*ExitError) // called at each unexpected end
	wake     chan struct{}    // receives when there may be commands

	mu       sync.Mutex
	commands []command // in the order they came
	ended    bool      // no command is carried out any more
}

type command struct {
	verb   Verb
	answer func(pid int, err error)
}

// NewMember returns a member that is not running. Run calls exited whenever the member ends by
// itself, before the member is restarted.
func NewMember(spec Spec, launcher *process.Launcher, exited func(*ExitError)) *Member {
	return &Member{
		spec: spec, launcher: launcher, exited: exited,
		wake: make(chan struct{}, 1),
	}
}

// Name returns the component's name.
func (m *Member) Name() string { return m.spec.Name }

// Enqueue adds a command. Commands are carried out one after the other, in the order in which
// they were added. When the command was carried out, answer is called once, with the process
// ID if the member then runs. After the end of Run it is called with an error.
func (m *Member) Enqueue(verb Verb, answer func(pid int, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		answer(0, m.unsupervised())
		return
	}
	m.commands = append(m.commands, command{verb, answer})
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// dequeue removes and returns the oldest command.
func (m *Member) dequeue() (c command, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.commands) == 0 {
		return command{}, false
	}
	c, m.commands = m.commands[0], m.commands[1:]
	return c, true
}

// rejectCommands answers all commands that were not carried out, and all later ones, with an
// error.
func (m *Member) rejectCommands() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	for _, c := range m.commands {
		c.answer(0, m.unsupervised())
	}
	m.commands = nil
}

func (m *Member) unsupervised() error { return fmt.Errorf("%s is no longer supervised", m.spec.Name) }

// Do enqueues a command and waits until it is carried out.
func (m *Member) Do(ctx context.Context, verb Verb) (pid int, err error) {
	type result struct {
		pid int
		err error
	}
	results := make(chan result, 1)
	m.Enqueue(verb, func(pid int, err error) { results <- result{pid, err} })
	select {
	case r := <-results:
		return r.pid, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Refresh restarts the member if it should run, and returns when it is ready again.
func (m *Member) Refresh(ctx context.Context) error {
	_, err := m.Do(ctx, refresh)
	return err
}

// Run carries out commands and restarts the member when it ends by itself. When ctx ends, Run
// ends the member within the grace period and returns nil. It returns an error when the member
// keeps ending without having been ready for a while.
func (m *Member) Run(ctx context.Context, grace time.Duration) error {
	r := &run{Member: m}
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
