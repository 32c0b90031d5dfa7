package follow

import "context"

type withoutWaitingKey struct{}

// WithoutWaiting returns a context in which watch.Until returns reason at once. It is for callers of functions
// that must not wait, such as a controller.
func WithoutWaiting(ctx context.Context, reason error) context.Context {
	return context.WithValue(ctx, withoutWaitingKey{}, reason)
}

// WaitingRefusal returns the reason of [WithoutWaiting], or nil if a function may wait.
func WaitingRefusal(ctx context.Context) error {
	reason, _ := ctx.Value(withoutWaitingKey{}).(error)
	return reason
}
