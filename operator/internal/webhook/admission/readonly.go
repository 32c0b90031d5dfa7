package admission

import (
	"context"
	"errors"

	"github.com/yare-go/yare/kube/wire"
)

// readOnly returns a function that puts a handler before another one. The handler passes reads on, and returns an error
// for a write.
func readOnly(w *Webhook) func(wire.Handler) wire.Handler {
	return func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if !r.Verb.IsWrite() {
				return next.Do(ctx, r)
			}
			e := wire.NewError(r)
			e.Permanent = true
			e.Err = errors.New(w.String() + " must not write: do this in a reconcile")
			return nil, e
		})
	}
}
