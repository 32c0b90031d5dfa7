package access

import "context"

// Retainer keeps what the cleanups in a namespace need, such as the Role of the program there, while objects of the namespace
// have finalizers of the program. Its methods must be safe for concurrent use.
type Retainer interface {
	// Retain is called before a controller adds its finalizer to an object of a namespace, and before it reconciles an object
	// that has the finalizer. An error fails the reconcile. The controller calls written once it adds no finalizer any more.
	Retain(ctx context.Context, namespace string) (written func(), err error)
	// RecordRemoval is called after a controller has removed its finalizers from an object of a namespace.
	RecordRemoval(namespace string)
}

type retainerKey struct{}

// WithRetainer returns a context for the parts of a program whose permissions r keeps.
func WithRetainer(ctx context.Context, r Retainer) context.Context {
	return context.WithValue(ctx, retainerKey{}, r)
}

// RetainerFrom returns the Retainer of [WithRetainer]. It returns nil in a program that watches all namespaces.
func RetainerFrom(ctx context.Context) Retainer {
	r, _ := ctx.Value(retainerKey{}).(Retainer)
	return r
}
