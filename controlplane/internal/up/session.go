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
	"github.com/yare-go/yare/controlplane/internal/egress"
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
	options options
	plane   *layout.Plane
	folder  *layout.Folder
	started time.Time
	reports reporter
	// commands is nil without --control.
	commands *commands
	// isReady is true once the plane can be used.
	isReady atomic.Bool
}

// run starts the plane, and runs it until the context ends or a component keeps failing.
// When it returns, no component runs.
func (s *session) run(ctx context.Context, launcher *process.Launcher) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil) // before the wait

	proxy, err := egress.Start(s.plane.DialSocket())
	if err != nil {
		return err
	}
	defer proxy.Close()

	var components []*supervise.Component
	for _, spec := range s.plane.Specs() {
		if spec.Name == layout.APIServer {
			spec.Ready = s.restartingClients(spec.Ready, func() []*supervise.Component { return components })
		}
		component := supervise.NewComponent(spec, launcher, s.reportExit)
		components = append(components, component)
		running.Go(func() {
			if err := component.Run(ctx, endGrace); err != nil {
				cancel(err)
			}
		})
	}
	pids, err := s.start(ctx, components)
	if err != nil {
		return causeOr(ctx, err)
	}
	if err := s.waitUsable(ctx); err != nil {
		return causeOr(ctx, err)
	}
	s.isReady.Store(true)

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
		running.Go(func() { s.commands.serve(ctx, s.plane, components) })
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

// start starts all components at the same time and returns when all are ready, or when the first
// component has failed. Components that need another component wait for it by themselves.
func (s *session) start(ctx context.Context, components []*supervise.Component) (map[string]int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		pids  = map[string]int{}
	)
	for _, component := range components {
		s.reports.report(control.Event{Event: control.Starting, Component: component.Name()})
		group.Go(func() {
			pid, err := component.Execute(ctx, supervise.Start)
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			pids[component.Name()] = pid
		})
	}
	group.Wait()
	return pids, context.Cause(ctx)
}

// restartingClients returns a readiness check for the API server, which waits for ready. If the plane was ready before,
// the API server was started once more. Then the check also restarts the clients of the API server, and waits until
// they are ready. Without the restart they would find the API server only after up to half a minute.
func (s *session) restartingClients(
	ready func(context.Context) error, components func() []*supervise.Component,
) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil || !s.isReady.Load() {
			return err
		}
		var group sync.WaitGroup
		for _, component := range components() {
			if slices.Contains(layout.APIServerClients(), component.Name()) {
				// A component that does not start is reported and started again by its own supervision.
				group.Go(func() { _ = component.Refresh(ctx) })
			}
		}
		group.Wait()
		return nil
	}
}

// waitUsable waits until the plane can be used.
func (s *session) waitUsable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, usableTimeout)
	defer cancel()
	return s.plane.WaitUsable(ctx)
}

// reportExit reports that a component ended by itself.
func (s *session) reportExit(exit *supervise.ExitError) {
	s.reports.report(control.Event{
		Event: control.Exited, Component: exit.Component, Error: fmt.Sprint(exit), Log: exit.Log,
	})
}
