package followed

import (
	"context"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
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
	Attempts
}

// Record records a state of the object.
func (o *Object[T]) Record(s State[T]) {
	o.LastKnown, o.version, o.NeedsRead = s.Object, s.Version, false
}

// Follow watches the object until ctx ends. It sends a function for each state and each error of the watch. The
// goroutine of the keeper calls the function, which records what the watch has shown.
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
		if o.LastKnown == nil {
			o.watchError = err
		}
	case o.LastKnown != nil && ident.IsNewer(o.version, s.Version):
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
