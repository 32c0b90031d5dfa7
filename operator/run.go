package operator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Run runs parts on a client until all are done, or one fails, or ctx ends; then it waits
// for all of them, and for the services after the others: see [Service]. It is [Main]
// without flags, signals and logs, for a program that has its own, or a test.
func Run(ctx context.Context, c *kube.Client, parts ...Part) error {
	return run(ctx, c, nil, parts)
}

// run is Run with a listener for questions about the program, which it closes. Without one
// nothing is counted.
//
// The end comes in this order: the program is not ready any more, and takes no new work;
// what is under way comes to its end, within the grace of each part; then the services end;
// then the listener, which can be asked until here; then the streams.
func run(ctx context.Context, c *kube.Client, listener net.Listener, parts []Part) error {
	needs, err := needsOf(parts)
	if err != nil {
		if listener != nil {
			_ = listener.Close() // nobody has asked anything
		}
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := slog.Default()
	var f *figures
	if listener != nil {
		f = newFigures()
		c = c.With(f.watchOver)
	}
	caches := cache.New(c, cache.OnError(func(s kube.Stream, err error) {
		// What concerns the server as a whole is told by whoever watches over requests.
		log.Debug("a stream is in trouble", "stream", s.String(), "error", err)
	}))
	defer caches.Close()
	rt := &controller.Runtime{Client: c, Cache: caches, Log: log}
	all := crew{runtime: rt, stop: cancel}
	if listener != nil {
		rt.Observer = f
		// What follows streams by itself does so through this client; controllers do not.
		own := newFollows()
		rt.Client = c.With(own.watchOver)
		f.collectStreams(caches.Stats)
		ready := &readiness{
			controllers: needs.Names, subscribed: f.registered, streams: caches.Stats, follows: own,
			ending: func() bool { return ctx.Err() != nil },
		}
		s := serve(listener, ready, f, log, all.fail)
		defer s.close()
	}
	all.run(ctx, parts)
	return all.err()
}

// crew are the parts of a program at work.
type crew struct {
	runtime *controller.Runtime
	// stop ends the work of all.
	stop context.CancelFunc

	mu   sync.Mutex
	errs []error
}

// run runs all parts, and returns when the last has ended.
func (c *crew) run(ctx context.Context, parts []Part) {
	// Services work on while the others come to their end.
	serving, dismiss := context.WithCancel(context.WithoutCancel(ctx))
	defer dismiss()
	var others, services sync.WaitGroup
	for _, part := range parts {
		if _, ok := part.(Service); ok {
			services.Go(func() { c.start(serving, part) })
		} else {
			others.Go(func() { c.start(ctx, part) })
		}
	}
	others.Wait()
	c.stop()
	dismiss()
	services.Wait()
}

func (c *crew) start(ctx context.Context, part Part) {
	err := part.Start(ctx, c.runtime)
	if err == nil || ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ctx.Err())) {
		return
	}
	c.fail(err)
}

// fail notes an error, which ends the program.
func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
	c.stop()
}

func (c *crew) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}
