package followed

import (
	"context"
	"errors"
	"fmt"
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
	Reference[T]
	// LastKnown is the last known state of the object. It is nil before the object was read.
	LastKnown *T
	// NeedsRead is true if the object may have changed unseen.
	NeedsRead bool
	// version is a resourceVersion at which the object was as LastKnown.
	version string
	// watchError is the error of the watch since the last attempt, if the watch has shown nothing yet.
	watchError error
	problem    Problem
	// writesSince is the begin of the present writeWindow, and writes is the number of writes in it.
	writesSince time.Time
	writes      int
}

// Source returns the changes of the object. client watches the object.
func (o *Object[T]) Source(client *kube.Client) Source {
	return func(ctx context.Context, events chan<- func()) {
		o.Watch(ctx, client, func(s State[T], err error) { send(ctx, events, func() { o.recordWatch(s, err) }) })
	}
}

func (o *Object[T]) recordWatch(s State[T], err error) {
	switch {
	case err != nil:
		o.NeedsRead = true
		if o.LastKnown == nil {
			o.watchError = err
		}
	case o.LastKnown != nil && ident.IsNewer(o.version, s.Version):
		o.NeedsRead = true // the watch lags behind, or the server was restored from a backup
	default:
		o.record(s)
	}
}

func (o *Object[T]) record(s State[T]) {
	o.LastKnown, o.version, o.NeedsRead = s.Object, s.Version, false
}

// Refresh reads the object.
func (o *Object[T]) Refresh(ctx context.Context, client *kube.Client) error {
	s, err := o.Read(ctx, client)
	if err == nil {
		o.record(s)
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

// Attempt calls correct, and returns its error and that of the watch. It calls log with the error, or with nil, if the
// attempt before has ended in another way.
func (o *Object[T]) Attempt(ctx context.Context, correct func(context.Context) error, log func(error)) error {
	err := errors.Join(o.watchError, correct(ctx))
	o.watchError = nil
	o.problem.Record(ctx, err, log)
	return err
}

// Change is a change of an object that is due. The zero value stands for none.
type Change[T any] struct {
	// Description is what changes, for errors.
	Description string
	// Write writes the object, and returns what the server has stored.
	Write func() (State[T], error)
}

// Correct writes the object until changeOf returns no change. If the server has another object than lastKnown, Correct
// reads the object by client, and calls changeOf again. Correct does nothing before the watch has shown the object.
func (o *Object[T]) Correct(
	ctx context.Context, client *kube.Client, changeOf func(ctx context.Context, lastKnown *T) (Change[T], error),
) error {
	for {
		if err := o.RefreshIfNeeded(ctx, client); err != nil || o.LastKnown == nil {
			return err
		}
		change, err := changeOf(ctx, o.LastKnown)
		if err != nil || change.Write == nil {
			return err
		}
		if now := time.Now(); now.Sub(o.writesSince) >= writeWindow {
			o.writesSince, o.writes = now, 0
		}
		if o.writes++; o.writes > maxWrites {
			return fmt.Errorf("the %s is changed again and again, or the API server stores something else than was written: "+
				"see its managedFields (%s)",
				o, change.Description)
		}
		switch s, err := change.Write(); {
		case err == nil:
			o.record(s)
		case IsOutdated(err):
			o.NeedsRead = true
		default:
			return err
		}
	}
}
