package up

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/controlplane/internal/control"
	"github.com/yare-go/yare/controlplane/internal/layout"
	"github.com/yare-go/yare/controlplane/internal/process"
	"github.com/yare-go/yare/controlplane/internal/supervise"
)

const (
	// endGrace is how long components may take to end when the whole plane ends. They have
	// nothing to save. The time is for components that end at once.
	endGrace = 300 * time.Millisecond
	// usableTimeout bounds the wait that follows when all components are ready.
	usableTimeout = 30 * time.Second
)

// session is one attempt to run a plane.
type session struct {
	options  options
	plane    *layout.Plane
	folder   *layout.Folder
	started  time.Time
	reports  reporter
	commands *commands // nil without --control
	ready    atomic.Bool
}

// run starts the plane, and runs it until the context ends or a component keeps failing.
// When it returns, no component runs.
func (s *session) run(ctx context.Context, launcher *process.Launcher) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil) // before the wait

	var members []*supervise.Member
	for _, spec := range s.plane.Members() {
		if spec.Name == layout.APIServer {
			spec.Ready = s.withFollowers(spec.Ready, func() []*supervise.Member { return members })
		}
		member := supervise.NewMember(spec, launcher, s.exited)
		members = append(members, member)
		running.Go(func() {
			if err := member.Run(ctx, endGrace); err != nil {
				cancel(err)
			}
		})
	}
	pids, err := s.start(ctx, members)
	if err != nil {
		return causeOr(ctx, err)
	}
	if err := s.usable(ctx); err != nil {
		return causeOr(ctx, err)
	}
	s.ready.Store(true)

	path := s.options.kubeconfig
	if path == "" {
		path = s.folder.Join("kubeconfig")
	}
	file, err := writeKubeconfig(path, s.plane.Kubeconfig())
	if err != nil {
		return err
	}
	s.reports.report(control.Event{
		Event: control.Ready, Kubeconfig: path, Server: s.plane.Server(), Dir: s.folder.Path,
		Seconds: float64(time.Since(s.started).Milliseconds()) / 1000, PIDs: pids,
	})
	if s.commands != nil {
		running.Go(func() { s.commands.serve(ctx, s.plane, members) })
	}
	<-ctx.Done()
	return errors.Join(causeOr(ctx, nil), file.remove())
}

// causeOr returns the cause with which ctx was canceled, or other if ctx has not ended or has
// no cause of its own.
func causeOr(ctx context.Context, other error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return other
}

// start starts all members at the same time and returns when all are ready, or when the first
// member has failed. Members that need another member wait for it by themselves.
func (s *session) start(ctx context.Context, members []*supervise.Member) (map[string]int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		pids  = map[string]int{}
	)
	for _, member := range members {
		s.reports.report(control.Event{Event: control.Starting, Component: member.Name()})
		group.Go(func() {
			pid, err := member.Do(ctx, supervise.Start)
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			pids[member.Name()] = pid
		})
	}
	group.Wait()
	return pids, context.Cause(ctx)
}

// withFollowers returns a readiness check for the API server. If the API server was started once more, the
// check also restarts the components that depend on it, and waits until they are ready. By themselves they
// would find the API server only after up to half a minute.
func (s *session) withFollowers(ready func(context.Context) error, members func() []*supervise.Member) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil || !s.ready.Load() {
			return err
		}
		var group sync.WaitGroup
		for _, member := range members() {
			if slices.Contains(layout.Followers(), member.Name()) {
				// A component that does not start is reported and started again by its own supervision.
				group.Go(func() { _ = member.Refresh(ctx) })
			}
		}
		group.Wait()
		return nil
	}
}

func (s *session) usable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, usableTimeout)
	defer cancel()
	return s.plane.Usable(ctx)
}

func (s *session) exited(exit *supervise.ExitError) {
	s.reports.report(control.Event{
		Event: control.Exited, Component: exit.Member, Error: fmt.Sprint(exit), Log: exit.Log,
	})
}
