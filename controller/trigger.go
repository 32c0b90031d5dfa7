package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yare-go/yare/cache"
	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// Source emits triggers until ctx ends, or it has no more. One that fails is run again,
// after growing intervals. Emit does not block, and may be called by several goroutines,
// but not after Run has returned. Run is called once everything that is watched is known.
type Source interface {
	Run(ctx context.Context, emit func(Trigger)) error
}

// SourceFunc is a function that is a Source.
type SourceFunc func(ctx context.Context, emit func(Trigger)) error

// Run calls f.
func (f SourceFunc) Run(ctx context.Context, emit func(Trigger)) error { return f(ctx, emit) }

// Trigger asks for an object to be reconciled; one that is not there, or that the
// controller does not watch, is passed over.
type Trigger struct {
	// Namespace does not count for a kind that lives outside of namespaces.
	Namespace, Name string
	// All asks for every object, in place of one; as with a resync, changes go first.
	All bool
	// Cause is for the log.
	Cause string
	// NotBefore is the earliest time. Default: at once.
	NotBefore time.Time
}

// From adds a source of triggers of the author's own.
func From(s Source) Option {
	return func(settings *settings) {
		switch s := s.(type) {
		case nil:
			settings.wrong(errors.New("a source is nil: give controller.From one, such as controller.Every(time.Hour)"))
		case checked:
			settings.wrong(s.check())
		}
		settings.custom = append(settings.custom, s)
	}
}

// checked is a source that knows of its own mistakes before it is run.
type checked interface{ check() error }

// Every is a source that triggers all objects at an interval.
func Every(interval time.Duration) Source { return every{interval} }

type every struct{ interval time.Duration }

func (e every) check() error {
	if e.interval <= 0 {
		return fmt.Errorf("the interval %s of a source is not positive: write one such as controller.Every(time.Hour)", e.interval)
	}
	return nil
}

func (e every) Run(ctx context.Context, emit func(Trigger)) error {
	ticker := time.NewTicker(e.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			emit(Trigger{All: true, Cause: "every " + e.interval.String()})
		case <-ctx.Done():
			return nil
		}
	}
}

// Channel is a source that triggers what comes through a channel, until that is closed. What
// comes is taken away from other controllers with the same channel.
func Channel(names <-chan kube.Ref) Source { return channel(names) }

type channel <-chan kube.Ref

func (c channel) check() error {
	if c == nil {
		return errors.New("the channel of a source is nil: make it before the controller")
	}
	return nil
}

func (c channel) Run(ctx context.Context, emit func(Trigger)) error {
	for {
		select {
		case ref, open := <-c:
			if !open {
				return nil
			}
			emit(Trigger{Namespace: ref.Namespace, Name: ref.Name, Cause: "channel"})
		case <-ctx.Done():
			return nil
		}
	}
}

// runSource runs a source of the author's own, again and again if it fails.
func (e *engine[T]) runSource(ctx context.Context, s Source) {
	for attempt := 1; ; attempt++ {
		started := time.Now()
		what := "a source"
		err := guard(&what, func() error { return s.Run(ctx, e.emit) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Since(started) > longestRetry {
			attempt = 1 // it was of use
		}
		wait := DefaultBackoff(attempt)
		attributes := []any{"controller", e.name, "error", err, "retry", wait.Round(10 * time.Millisecond)}
		e.log.Error("a source failed", append(attributes, stackOf(err, attempt == 1)...)...)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// emit takes in a trigger of the author's own.
func (e *engine[T]) emit(t Trigger) {
	trigger := queue.Trigger{
		Key: queue.Key{Namespace: t.Namespace, Name: t.Name}, Priority: queue.High,
		NotBefore: t.NotBefore, Cause: queue.Cause{Change: t.Cause},
	}
	if e.kind.Resource.ClusterScoped {
		trigger.Key.Namespace = ""
	}
	if !t.All {
		if e.covers(trigger.Key) {
			e.queue.Add(trigger)
		}
		return
	}
	trigger.Priority = queue.Low
	for _, sub := range e.own {
		for o := range sub.open.Store().All(cache.Filter{}) {
			trigger.Key = queue.Key{Namespace: o.Namespace, Name: o.Name}
			e.queue.Add(trigger)
		}
	}
}
