package watch

// Event is one of Added, Modified, Deleted and Synced.
type Event[T any] interface{ event(*T) }

type (
	// Added is an object that this sequence had not shown yet.
	Added[T any] struct{ Object *T }

	// Modified is a newer state of an object that it had shown.
	Modified[T any] struct{ Object *T }

	// Deleted is an object that is gone, or that does not match the selectors any more.
	Deleted[T any] struct {
		// Object is the last state, or only its metadata: see Stale.
		Object *T
		// Stale is true when the deletion itself was not seen, but that the object is not
		// there any more. Then Object has its namespace, name, uid and kind, and the last
		// resourceVersion that was seen, and no more.
		Stale bool
	}

	// Synced comes once, when the initial state is complete.
	Synced[T any] struct{}
)

func (Added[T]) event(*T)    {}
func (Modified[T]) event(*T) {}
func (Deleted[T]) event(*T)  {}
func (Synced[T]) event(*T)   {}
