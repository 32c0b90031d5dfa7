package follow

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Change is one step of a stream. Its Type determines which of the other fields are set.
type Change struct {
	Type ChangeType
	// Key names the object of ChangeAdded, ChangeModified and ChangeDeleted.
	Key kube.Key
	// UID is the uid of that object.
	UID types.UID
	// ResourceVersion is the version of that object. For a deletion that was observed, it is the
	// version of the deletion; for any other deletion, it is the last version that was observed.
	// For ChangeListed and ChangeBookmark it is the version that the stream has reached.
	ResourceVersion string
	// Object is the object as the server sent it, in JSON, valid until the next Change. It is nil for a
	// deletion that was not observed itself, and for changes without an object.
	Object []byte
	// Metadata are the members of the metadata of Object, in their order and without managedFields, valid until the next
	// Change. A consumer that needs them need not read the metadata again. It is empty if Object is nil.
	Metadata []jsonscan.Member
	// IsUnserved is true for a ChangeListed without a list: the server does not serve the resource, so
	// there are no objects. ResourceVersion is then the version that the stream had reached before.
	IsUnserved bool
}

// ChangeType is the kind of a Change.
type ChangeType int

const (
	// noChange means that there is nothing to publish. No Change has this type.
	noChange ChangeType = iota
	// ChangeAdded adds an object to the stream.
	ChangeAdded
	// ChangeModified replaces an object of the stream by another version of it.
	ChangeModified
	// ChangeDeleted removes an object from the stream.
	ChangeDeleted
	// ChangeListStarted begins a list: until the next ChangeListed, the versions of objects
	// are in no order. A list that fails is followed by another ChangeListStarted.
	ChangeListStarted
	// ChangeListed ends a list: the changes so far make up the whole state at its
	// ResourceVersion. That version is lower than an earlier one only if the server was
	// restored from a backup.
	ChangeListed
	// ChangeUnlisted reports that the first list has failed, and may fail for long: the server has forbidden it, or all
	// tries have failed for unlistedAfter. It follows the error of each such try until the first ChangeListed.
	ChangeUnlisted
	// ChangeBookmark reports that the stream has reached its ResourceVersion without any
	// change.
	ChangeBookmark
	// ChangeWatchOpened reports that a watch is open: the server has accepted it, and from now on sends every
	// change. A watch that begins with a list is open from the end of the list on, after its ChangeListed.
	ChangeWatchOpened
	// ChangeWatchEnded reports that the open watch has ended, for whatever reason, or was
	// silent for too long. Until the next ChangeWatchOpened, the state may be older than the
	// server's state by any time. The end of the sequence itself also ends the watch, without
	// this change.
	ChangeWatchEnded
)

// ObjectState is a state of one object: see [ObjectStates].
type ObjectState struct {
	// Object is the object as the server sent it, in JSON, valid until the next ObjectState. It is nil if there is none.
	Object []byte
	// ResourceVersion is a version at which the object had this state.
	ResourceVersion string
}

// ObjectStates follows s, which selects at most one object, and returns the states of the object. The first state comes
// after the first complete list, also if there is no object. The errors are those of [Changes].
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
