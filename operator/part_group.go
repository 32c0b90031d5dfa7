package operator

import (
	"context"
	"errors"
	"sync"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/follow"
)

// partGroup runs the parts of a program. The first error ends them all.
type partGroup struct {
	runtime *controller.Runtime
	// tracker knows the streams that parts follow by themselves, without the cache.
	tracker *follow.SyncTracker
	// stop ends the work of all parts.
	stop context.CancelFunc

	mu   sync.Mutex
	errs []error
}

// runAll runs all parts, and returns their errors when the last part has ended.
func (g *partGroup) runAll(ctx context.Context, parts []Part) error {
	// Services go on while the other parts come to their end.
	serviceCtx, stopServices := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServices()
	var others, services sync.WaitGroup
	for _, part := range parts {
		if needs, err := part.Needs(); err == nil && needs.Service {
			services.Go(func() { g.runPart(serviceCtx, part) })
		} else {
			others.Go(func() { g.runPart(ctx, part) })
		}
	}
	others.Wait()
	g.stop()
	stopServices()
	services.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}

// runPart runs one part until it ends. A part for one replica alone starts when the replica leads. The end of its
// context is no error of the part.
func (g *partGroup) runPart(ctx context.Context, part Part) {
	// A part with controllers is ready when these have subscribed. Streams that the functions
	// of a controller follow for a while do not affect its readiness.
	needs, err := part.Needs()
	if err != nil {
		g.fail(err)
		return
	}
	if len(needs.Controllers) == 0 {
		ctx = follow.WithSyncTracker(ctx, g.tracker)
	}
	if !needs.EveryReplica && !needs.Service && g.runtime.WaitElected(ctx) != nil {
		return
	}
	err = part.Start(ctx, g.runtime)
	if err == nil || ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ctx.Err())) {
		return
	}
	g.fail(err)
}

// fail records an error of the program, and ends all parts.
func (g *partGroup) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs = append(g.errs, err)
	g.stop()
}
