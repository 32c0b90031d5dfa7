package echo

import (
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// writeResult is what a write did.
type writeResult struct {
	// version is the version that the write made. It is empty if the write made none, or if
	// that is not known.
	version Version
	// echo is how certain it is that the write made the version.
	echo queue.Echo
	// replaced is the resource version that the write replaced. It is set only for an echo that is queue.OwnStatus.
	replaced string
	// isUncertain is true if it is not known what the write did. isCarriedOut is true if the server has carried it out.
	isUncertain, isCarriedOut bool
	// deleted holds the objects that a write to a collection has deleted, or may have deleted. It is nil if the objects
	// are not known.
	deleted uidSet
}

// uidSet is a set of objects.
type uidSet map[types.UID]struct{}

// newWriteResult returns what a write did, by its answer. before is the newest version of the object
// that a stream had shown when the write began.
//
// The answer to a write without effect has the version from before. Somebody else made that version.
// Only three kinds of writes certainly made the version of their answer: a create, a delete, and a
// write that named the replaced version.
//
// writesOwnStatus is true if r writes the status of the reconciled object, and the echoes of such writes are to be
// found. The echo is queue.OwnStatus if r named the replaced version and the stored status is the status in r.
func newWriteResult(
	r *wire.Request, response *wire.Response, err error, before Version, writesOwnStatus bool,
) writeResult {
	switch {
	case err != nil:
		e, ok := kube.AsError(err)
		return writeResult{isUncertain: !ok || e.Unknown}
	case r.Verb == wire.VerbDeleteCollection:
		return writeResult{isUncertain: true, deleted: deletedBy(response.Body)}
	}
	var answer struct {
		Kind     string `json:"kind"`
		Metadata struct {
			UID               types.UID `json:"uid"`
			ResourceVersion   string    `json:"resourceVersion"`
			DeletionTimestamp *string   `json:"deletionTimestamp"`
		} `json:"metadata"`
		Details struct {
			UID types.UID `json:"uid"`
		} `json:"details"`
	}
	if kube.Unmarshal(response.Body, &answer) != nil {
		return writeResult{isUncertain: true}
	}
	uid, version := answer.Metadata.UID, answer.Metadata.ResourceVersion
	replaced := r.Preconditions.ResourceVersion
	switch {
	case answer.Kind == "Status" && answer.Details.UID != "":
		return writeResult{isCarriedOut: true, version: Version{UID: answer.Details.UID}, echo: queue.CertainEcho}
	case r.Verb == wire.VerbDelete && answer.Metadata.DeletionTimestamp == nil:
		return writeResult{isCarriedOut: true, version: Version{UID: uid}, echo: queue.CertainEcho}
	case uid == "" || version == "":
		return writeResult{isUncertain: true} // the answer of a subresource, or no object
	case uid == before.UID && !ident.IsNewer(version, before.ResourceVersion), version == replaced:
		return writeResult{isCarriedOut: true} // nothing has changed
	case writesOwnStatus && replaced != "" && isStatusStored(r, response.Body):
		return writeResult{isCarriedOut: true, version: Version{uid, version}, echo: queue.OwnStatus, replaced: replaced}
	case r.Verb == wire.VerbCreate, r.Verb == wire.VerbDelete, replaced != "":
		return writeResult{isCarriedOut: true, version: Version{uid, version}, echo: queue.CertainEcho}
	default:
		return writeResult{isCarriedOut: true, version: Version{uid, version}, echo: queue.PossibleEcho}
	}
}

// maxDeleted bounds the objects that are remembered of one write to a collection.
const maxDeleted = 1000

// deletedBy returns the objects in the answer to the deletion of a collection: those that the API server found by the
// selectors of the request, and has deleted. It returns nil if the answer is no list, or if there are too many objects.
func deletedBy(answer []byte) uidSet {
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Metadata struct {
				UID types.UID `json:"uid"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if kube.Unmarshal(answer, &list) != nil || !strings.HasSuffix(list.Kind, "List") || len(list.Items) > maxDeleted {
		return nil
	}
	deleted := make(uidSet, len(list.Items))
	for _, item := range list.Items {
		deleted[item.Metadata.UID] = struct{}{}
	}
	return deleted
}

// isStatusStored reports whether r sent a whole status, and the answer has exactly this status.
func isStatusStored(r *wire.Request, answer []byte) bool {
	if r.Verb != wire.VerbUpdate && r.ContentType != wire.ContentApply {
		return false
	}
	var sent, stored struct {
		Status any `json:"status"`
	}
	return kube.Unmarshal(r.Body, &sent) == nil && kube.Unmarshal(answer, &stored) == nil &&
		sent.Status != nil && reflect.DeepEqual(sent.Status, stored.Status)
}

// uncertainWrite is a write of unknown result. It explains a change that a stream shows later if the write may have
// made the change. A write of one object explains at most one change. The deletion of a collection explains one change
// of each object in its answer or, if the answer is lost, of each object that the deletion may have deleted. If these
// objects are not known, or too many, the deletion explains each deletion in the collection.
type uncertainWrite struct {
	Target
	ended time.Time
	// deleted holds the objects of a collection whose deletion is not shown yet. It is nil if the objects are not known.
	deleted uidSet
	// isDelete is true if the write deletes, and isOfStatus if it goes to the status subresource.
	isDelete, isOfStatus bool
}

// newUncertainWrite returns the write r to t, which has just ended with result.
func newUncertainWrite(t Target, r *wire.Request, result writeResult) uncertainWrite {
	return uncertainWrite{
		Target: t, ended: time.Now(), deleted: result.deleted, isOfStatus: r.Subresource == "status",
		isDelete: r.Verb == wire.VerbDelete || r.Verb == wire.VerbDeleteCollection,
	}
}

// canExplain reports whether the write may have led to a change of its target. Only a delete can
// begin a deletion, and a write of a status changes nothing else.
func (w uncertainWrite) canExplain(v ShownVersion) bool {
	switch {
	case w.isDelete:
		_, isDeleted := w.deleted[v.UID]
		return v.IsDeletionStep && (w.deleted == nil || isDeleted)
	case w.isOfStatus:
		return !v.IsDeletionStep && !v.ChangesSpec
	}
	// The removal of the last finalizer ends an object that is being deleted. Somebody else has begun the deletion.
	return !v.IsDeletionStep || v.IsDeletion() && v.WasBeingDeleted
}
