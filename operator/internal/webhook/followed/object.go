package followed

import (
	"context"
	"errors"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

const (
	maxWrites   = 10
	writeWindow = 5 * time.Second
)

// Object is what a keeper knows of an object. It is used by one goroutine.
type Object[T any] struct {
	Client[T]
	// Live is the object as far as known. It is nil before the object was read.
	Live *T
	// NeedsRead is true if the object may have changed unseen.
	NeedsRead bool
	// version is a resourceVersion at which the object was Live.
	version string
	// watchError is the error of the watch since the last attempt, if the watch has shown nothing yet.
	watchError error
	// writesSince is the begin of the present writeWindow, and writes is the number of writes in it.
	writesSince time.Time
	writes      int
	// problem is why the last attempt has failed. It is empty if the attempt has succeeded.
	problem string
}

// Record records a state of the object.
func (o *Object[T]) Record(s State[T]) { o.Live, o.version, o.NeedsRead = s.Object, s.Version, false }

// Follow watches the object until ctx ends. It sends a function for each state and each error of the watch. The goroutine of the
// keeper calls the function, which records what the watch has shown.
func (o *Object[T]) Follow(ctx context.Context, client *kube.Client, records chan<- func()) {
	o.Watch(ctx, client, func(s State[T], err error) {
		select {
		case records <- func() { o.recordWatch(s, err) }:
		case <-ctx.Done():
		}
	})
}

func (o *Object[T]) recordWatch(s State[T], err error) {
	switch {
	case err != nil:
		o.NeedsRead = true
		if o.Live == nil {
			o.watchError = err
		}
	case o.Live != nil && ident.IsNewer(o.version, s.Version):
		o.NeedsRead = true // the watch lags behind, or the server was restored from a backup
	default:
		o.Record(s)
	}
}

// Refresh reads the object.
func (o *Object[T]) Refresh(ctx context.Context, client *kube.Client) error {
	s, err := o.Read(ctx, client)
	if err == nil {
		o.Record(s)
	}
	return err
}

// RefreshIfNeeded reads the object if it may have changed unseen.
func (o *Object[T]) RefreshIfNeeded(ctx context.Context, client *kube.Client) error {
	if !o.NeedsRead {
		return nil
	}
	return o.Refresh(ctx, client)
}

// RecordWrite records a write at a time. It reports whether there were not too many writes: another program may undo each one at
// once.
func (o *Object[T]) RecordWrite(now time.Time) (isAllowed bool) {
	if now.Sub(o.writesSince) >= writeWindow {
		o.writesSince, o.writes = now, 0
	}
	o.writes++
	return o.writes <= maxWrites
}

// Attempt calls correct, and returns its error and that of the watch.
func (o *Object[T]) Attempt(correct func() error) error {
	err := errors.Join(o.watchError, correct())
	o.watchError = nil
	return err
}

// RecordProblem records how an attempt has ended. It reports whether that differs from the attempt before, so that a problem is
// logged once in a row.
func (o *Object[T]) RecordProblem(err error) (isChanged bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	isChanged = text != o.problem
	o.problem = text
	return isChanged
}
