package wire

import "context"

// Handler serves requests. For an answer other than 2xx it returns an [*Error]. It must be safe
// for concurrent use, and must return when ctx ends.
//
// The order of yare's own handlers stands in docs/architecture.md, "The pipeline of requests".
type Handler interface {
	Do(ctx context.Context, r *Request) (*Response, error)
}

// HandlerFunc is a function that serves requests as a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (*Response, error)

// Do calls f.
func (f HandlerFunc) Do(ctx context.Context, r *Request) (*Response, error) { return f(ctx, r) }
