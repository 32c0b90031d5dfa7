package follow

import (
	"context"
	"iter"

	"github.com/yare-go/yare/kube/wire"
)

// ObjectState is a state of one object: see [ObjectStates].
type ObjectState struct {
	// Object is the object as the server sent it, in JSON, valid until the next ObjectState. It is nil if there is none.
	Object []byte
	// ResourceVersion is a version at which the object had this state.
	ResourceVersion string
}

// ObjectStates follows s, which selects at most one object, and returns the states of the object. The first state comes after
// the first complete list, also if there is no object. The errors are those of [Changes].
func ObjectStates(ctx context.Context, h wire.Handler, s wire.Stream) iter.Seq2[ObjectState, error] {
	return func(yield func(ObjectState, error) bool) {
		exists := false
		for change, err := range Changes(ctx, h, s) {
			state := ObjectState{change.Object, change.ResourceVersion}
			switch {
			case err != nil:
			case change.Type == ChangeAdded, change.Type == ChangeModified:
				exists = true
			case change.Type == ChangeDeleted, change.Type == ChangeListed && !exists:
				state.Object, exists = nil, false
			default:
				continue
			}
			if !yield(state, err) {
				return
			}
		}
	}
}
