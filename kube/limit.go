package kube

import "context"

// LimitWrites lets at most n writes through at a time, and makes the others wait; reads and
// watches pass. The server's priority and fairness divides what it can do among its
// clients; the limit keeps one client from having so much in flight that, when something
// breaks, the fate of all of it is unknown.
func LimitWrites(n int) func(next Handler) Handler {
	tokens := make(chan struct{}, max(n, 1))
	return func(next Handler) Handler {
		return HandlerFunc(func(ctx context.Context, r *Request) (*Response, error) {
			if !r.Verb.IsWrite() {
				return next.Do(ctx, r)
			}
			select {
			case tokens <- struct{}{}:
			case <-ctx.Done():
				e := newError(r)
				e.Err = ctx.Err()
				return nil, e
			}
			defer func() { <-tokens }()
			return next.Do(ctx, r)
		})
	}
}
