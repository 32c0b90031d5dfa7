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

// Source emits triggers of the author's own: see [From].
type Source interface {
	// Run emits triggers until ctx ends or the source has no more. The controller calls Run
	// once all streams are synced. If Run returns an error or panics, the controller logs that
	// and calls Run again, with growing intervals. emit does not block and can be called
	// concurrently, but not after Run has returned.
	Run(ctx context.Context, emit func(Trigger)) error
}

// SourceFunc is a function that is a [Source].
type SourceFunc func(ctx context.Context, emit func(Trigger)) error

// Run calls f.
func (f SourceFunc) Run(ctx context.Context, emit func(Trigger)) error { return f(ctx, emit) }

// From adds a source of triggers.
func From(s Source) Option {
	return optionFunc(func(settings *settings) {
		switch s := s.(type) {
		case nil:
			settings.reject(errors.New("a source is nil: give controller.From one, such as controller.Every(time.Hour)"))
		case checked:
			settings.reject(s.check())
		}
		settings.sources = append(settings.sources, s)
	})
}

// checked is a source whose mistakes are found before it runs.
type checked interface{ check() error }

// Every returns a source that triggers all objects at an interval. Up to a tenth is added to each
// interval at random, so that several programs do not resync at the same moments. A resync neither
// overtakes changes nor ends a back-off.
func Every(interval time.Duration) Source { return every{interval} }

type every struct{ interval time.Duration }

func (e every) check() error {
	if e.interval <= 0 {
		return fmt.Errorf("the interval %s of a source is not positive: write one such as controller.Every(time.Hour)", e.interval)
	}
	return nil
}

func (e every) Run(ctx context.Context, emit func(Trigger)) error {
	return e.onClock(clock.From(ctx)).Run(ctx, emit)
}

// onClock returns a source that waits on c. The clock is not moved before the source waits.
func (e every) onClock(c *clock.Clock) Source {
	cause := "every " + e.interval.String()
	sleeper := clock.NewSleeper(c, cause)
	return SourceFunc(func(ctx context.Context, emit func(Trigger)) error {
		defer sleeper.Close()
		for sleeper.Sleep(ctx, withJitter(e.interval)) {
			emit(Trigger{All: true, Cause: cause})
		}
		return nil
	})
}

// Channel returns a source that triggers objects until a channel is closed. The keys of the objects come
// through the channel. A key that one controller receives does not reach other controllers with the same
// channel.
func Channel(keys <-chan kube.Key) Source { return channel(keys) }

type channel <-chan kube.Key

func (c channel) check() error {
	if c == nil {
		return errors.New("the channel of a source is nil: make it before the controller")
	}
	return nil
}

func (c channel) Run(ctx context.Context, emit func(Trigger)) error {
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

// runSource runs a source until it ends without an error, or ctx ends.
func runSource(ctx context.Context, log *slog.Logger, s Source, emit func(Trigger)) {
	for attempt := 1; ; attempt++ {
		started := time.Now()
		what := "a source"
		err := guard(&what, func() error { return s.Run(ctx, emit) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Since(started) > longestRetry {
			attempt = 1 // the source has worked meanwhile
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
