package kube

import (
	"context"

	"github.com/yare-go/yare/kube/wire"
)

// limitWrites returns a Handler that passes at most n writes to next at a time. The other
// writes wait; reads and watches do not. The server's priority and fairness divides its
// capacity among its clients. The limit bounds the number of writes with an unknown outcome when a
// connection breaks.
//
// The Handler stands below [retry]. Therefore a write holds no place while it waits for its repetition.
func limitWrites(n int, next wire.Handler) wire.Handler {
	places := make(chan struct{}, max(n, 1))
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		if !r.Verb.IsWrite() {
			return next.Do(ctx, r)
		}
		select {
		case places <- struct{}{}:
		default:
			// This wait is no silence of the server.
			var err error
			answerTimeoutOf(ctx).pause(func() {
				select {
				case places <- struct{}{}:
				case <-ctx.Done():
					e := wire.NewError(r)
					e.Err, e.Permanent = contextError(ctx), true
					err = e
				}
			})
			if err != nil {
				return nil, err
			}
		}
		defer func() { <-places }()
		return next.Do(ctx, r)
	})
}
