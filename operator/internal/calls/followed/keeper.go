package followed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	minRetry = time.Second
	// MaxRetry is the longest wait after a failed attempt for an object that must be right within 10 seconds.
	MaxRetry = 5 * time.Second
)

// Keeper keeps objects at the state that is due. One goroutine runs it, calls its functions, and reads and writes the
// objects.
type Keeper struct {
	// Sources are what the keeper waits for: the objects, and signals.
	Sources []Source
	// Changed returns a channel that is closed at the next change of what is due. The channel may be nil.
	Changed func() <-chan struct{}
	// Correct brings the objects to the state that is due. It reports whether all are right. The next call comes after a
	// change. If wait is not zero and all are right, the next call comes after that time at the latest.
	Correct func(ctx context.Context) (areRight bool, wait time.Duration)
	// MaxRetry is the longest wait after a failed attempt. It is at least a second.
	MaxRetry time.Duration
}

// Source sends events to a keeper until ctx ends, or until there are no more. The goroutine of the keeper calls each
// event, which records what has happened.
type Source func(ctx context.Context, events chan<- func())

// Run calls Correct at the beginning, after each change, and after failed attempts, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	events := make(chan func())
	for _, source := range k.Sources {
		running.Go(func() { source(ctx, events) })
	}
	for failures := 0; ; {
		changed := k.Changed()
		areRight, wait := k.Correct(ctx)
		if areRight {
			failures = 0
		} else {
			wait = min(minRetry<<min(failures, 10), k.MaxRetry)
			wait = wait/2 + rand.N(wait/2) // replicas do not act at the same moment
			failures++
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case event := <-events:
			event()
		case <-changed:
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

// Values returns a source with an event for each value of a channel, and one for its end. The event calls record. The
// channel may be nil.
func Values[T any](values <-chan T, record func(T)) Source {
	return func(ctx context.Context, events chan<- func()) {
		for isOpen := true; isOpen; {
			var value T
			select {
			case value, isOpen = <-values:
				send(ctx, events, func() { record(value) })
			case <-ctx.Done():
				return
			}
		}
	}
}

func send(ctx context.Context, events chan<- func(), event func()) {
	select {
	case events <- event:
	case <-ctx.Done():
	}
}

// Problem is why an attempt has failed, so that a problem is logged once in a row. It is used by one goroutine.
type Problem struct {
	// text is empty if the last attempt has succeeded.
	text string
}

// Record records how an attempt has ended. It calls log with err if the attempt before has ended in another way. It
// does nothing after the end of ctx.
func (p *Problem) Record(ctx context.Context, err error, log func(error)) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if ctx.Err() == nil && text != p.text {
		p.text = text
		log(err)
	}
}
