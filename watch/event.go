package watch

// Event is one of Added, Modified, Deleted and Synced.
type Event[T any] interface{ event(*T) }

type (
	// Added is an object that the sequence has not shown before, or not since its deletion.
	Added[T any] struct{ Object *T }

	// Modified is a newer state of an object that the sequence has shown.
	Modified[T any] struct{ Object *T }

	// Deleted is an object that was deleted, or that no longer matches the selectors.
	Deleted[T any] struct {
		// Object is the last state. If Stale is true, it has only kind, namespace, name, uid,
		// and the last resource version that was seen.
		Object *T
		// Stale is true if the deletion itself was not observed: the object was missing from a
		// later list.
		Stale bool
	}

	// Synced follows the last object of the initial state. It comes once.
	Synced[T any] struct{}
)

func (Added[T]) event(*T)    {}
func (Modified[T]) event(*T) {}
func (Deleted[T]) event(*T)  {}
func (Synced[T]) event(*T)   {}
