package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// Trigger asks for the reconcile of one object, or of all.
type Trigger struct {
	// Key names the object. A trigger is ignored if the object does not exist, or if the controller does not
	// watch the object. The namespace is ignored if the reconciled kind is cluster-scoped.
	Key kube.Key
	// All asks for all objects, and Key is ignored. Changes of objects go first, as with a resync.
	All bool
	// Cause is for the log and for [Result].
	Cause string
	// NotBefore is the earliest time of the reconcile, such as [Now] plus a delay. The zero time
	// means at once.
	NotBefore time.Time
}

// emitter is a source that is no watched kind, such as a timer.
type emitter interface {
	// run emits triggers until ctx ends, or the emitter has no more.
	run(ctx context.Context, emit func(Trigger)) error
	// check returns what is wrong with the emitter, or nil.
	check() error
}

// addEmitter returns an option that adds an emitter.
func addEmitter(e emitter) Option {
	return optionFunc(func(s *settings) {
		s.reject(e.check())
		s.emitters = append(s.emitters, e)
	})
}

// From adds a source of triggers: a function that emits triggers until ctx ends or the source has no more. The
// controller calls run once all streams are synced. If run returns an error or panics, the controller logs that and
// calls run again, with growing intervals. emit does not block and can be called concurrently, but not after run has
// returned. See [Every] and [Channel] for usual sources.
func From(run func(ctx context.Context, emit func(Trigger)) error) Option {
	return addEmitter(emitterFunc(run))
}

// emitterFunc is an emitter that is a function, such as an author's.
type emitterFunc func(ctx context.Context, emit func(Trigger)) error

func (f emitterFunc) check() error {
	if f == nil {
		return errors.New("the function of controller.From is nil: write a function that emits triggers")
	}
	return nil
}

func (f emitterFunc) run(ctx context.Context, emit func(Trigger)) error { return f(ctx, emit) }

// Every triggers all objects at an interval. Up to a tenth is added to each
// interval at random, so that several programs do not resync at the same moments. A resync neither
// overtakes changes nor ends a back-off. An interval below 10 ms is an error.
func Every(interval time.Duration) Option { return addEmitter(every{interval}) }

type every struct{ interval time.Duration }

func (e every) check() error {
	if e.interval < shortestWait {
		return fmt.Errorf("the interval %s is shorter than %s: write one with a unit, such as controller.Every(time.Hour)",
			e.interval, shortestWait)
	}
	return nil
}

func (e every) run(ctx context.Context, emit func(Trigger)) error {
	return e.onClock(clock.From(ctx))(ctx, emit)
}

// onClock returns an emitter that waits on c. The clock is not moved before the emitter waits.
func (e every) onClock(c *clock.Clock) emitterFunc {
	cause := "every " + e.interval.String()
	sleeper := clock.NewSleeper(c, cause)
	return func(ctx context.Context, emit func(Trigger)) error {
		defer sleeper.Close()
		for sleeper.Sleep(ctx, withJitter(e.interval)) {
			emit(Trigger{All: true, Cause: cause})
		}
		return nil
	}
}

// Channel triggers objects until a channel is closed. The keys of the objects come
// through the channel. A key that one controller receives does not reach other controllers with the same
// channel.
func Channel(keys <-chan kube.Key) Option { return addEmitter(channel(keys)) }

type channel <-chan kube.Key

func (c channel) check() error {
	if c == nil {
		return errors.New("the channel of controller.Channel is nil: make it before the controller")
	}
	return nil
}

func (c channel) run(ctx context.Context, emit func(Trigger)) error {
	for {
		select {
		case k, open := <-c:
			if !open {
				return nil
			}
			emit(Trigger{Key: k, Cause: "channel"})
		case <-ctx.Done():
			return nil
		}
	}
}

// runEmitter calls run until run returns without an error, or ctx ends. It logs the errors of run.
func runEmitter(ctx context.Context, log *slog.Logger, run emitterFunc, emit func(Trigger)) {
	for attempt := 1; ; attempt++ {
		started := time.Now()
		what := "a source"
		err := recoverPanic(&what, func() error { return run(ctx, emit) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Since(started) > longestRetryDelay {
			attempt = 1 // the emitter has worked meanwhile
		}
		wait := DefaultBackoff(attempt)
		attributes := []slog.Attr{slog.Any("error", err), slog.Duration("retry", wait.Round(10*time.Millisecond))}
		log.LogAttrs(ctx, slog.LevelError, "a source failed", append(attributes, panicAttrs(err, attempt == 1)...)...)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}
