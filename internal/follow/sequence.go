package follow

import (
	"errors"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube/wire"
)

// errStopped ends a sequence whose consumer has left the loop.
var errStopped = errors.New("the consumer has left the loop")

// sequence turns the objects that a server sends into the changes of one stream, and yields them.
//
//	wire.Frame   one line of a watch: a type and the JSON of an object
//	    │ readIdentity
//	identity     key, uid and resource version of the object
//	    │ objectTracker
//	Change       what the object means for the stream, for example ChangeModified. No change is
//	    │        published for a version that was seen before
//	    │ yield
//	consumer     package cache, watch.Events or watch.Until
//
// The items of a paged list take the same steps without a Frame.
type sequence struct {
	stream  wire.Stream
	yield   func(Change, error) bool
	tracker objectTracker
	backoff *backoff
	// record records a change in the SyncTracker of the context before the change is yielded.
	record func(Change)

	// version is the resource version to watch from: the version of a complete list, of its end
	// mark, of an event after it, or of a bookmark. It is empty when a list is due.
	version string
	// reachedVersion is the version that the stream has reached, even when a list is due. It is empty
	// before the first list.
	reachedVersion string
	// isListed is true once a list was complete.
	isListed bool
	// isListing is true from the beginning of a list to its end. The versions of objects in
	// between are in no order.
	isListing bool
	// members is a buffer for the metadata of an object.
	members []jsonscan.Member
}

// readIdentity returns the identity of an object. The metadata in it are valid until the next call.
func (q *sequence) readIdentity(object []byte) (identity, error) {
	id, err := readIdentity(q.stream, object, q.members)
	q.members = id.metadata
	return id, err
}

// beginList publishes that a list begins.
func (q *sequence) beginList() error {
	q.isListing = true
	q.tracker.beginList()
	return q.publish(Change{Type: ChangeListStarted})
}

// endList records that a list is complete at version, and publishes the rest of it.
func (q *sequence) endList(version string) error {
	q.version, q.reachedVersion = version, version
	return q.publishListed(version, false)
}

// endUnservedList records that the server does not serve the resource. The list is complete without objects, at the
// version that the stream has reached. The version is empty if the stream has not reached any. The next list is due
// after it.
func (q *sequence) endUnservedList() error {
	q.version = ""
	return q.publishListed(q.reachedVersion, true)
}

// publishListed publishes the deletions of the objects that the current list does not contain. It then
// publishes that the list is complete at version, or that the server does not serve the resource.
func (q *sequence) publishListed(version string, isUnserved bool) error {
	for _, o := range q.tracker.takeMissing() {
		if err := q.publishMissing(o); err != nil {
			return err
		}
	}
	q.isListing, q.isListed = false, true
	q.tracker.forgetDeletions(version)
	q.backoff.recordList()
	return q.publish(Change{Type: ChangeListed, ResourceVersion: version, IsUnserved: isUnserved})
}

// putItem publishes the changes that follow from the existence of an object in a list.
func (q *sequence) putItem(object []byte) error {
	id, err := q.readIdentity(object)
	if err != nil {
		return q.putUndecodable(id, err)
	}
	return q.put(id, object)
}

// putUndecodable publishes that an object exists whose metadata cannot be read. decodeErr is the error of readIdentity.
func (q *sequence) putUndecodable(id identity, decodeErr error) error {
	q.tracker.putUndecodable(id)
	return q.publishError(decodeErr)
}

// put publishes the changes that follow from the existence of an object.
func (q *sequence) put(id identity, object []byte) error {
	replaced, change := q.tracker.put(id.key, id.version())
	if replaced.key.Name != "" {
		if err := q.publishMissing(replaced); err != nil {
			return err
		}
	}
	if change != noChange {
		if err := q.publish(id.change(change, object)); err != nil {
			return err
		}
	}
	q.advance(id.resourceVersion)
	return nil
}

// remove publishes the change that follows from the deletion of an object.
func (q *sequence) remove(id identity, object []byte) error {
	if q.tracker.remove(id.key, id.version(), q.isListing) {
		if err := q.publish(id.change(ChangeDeleted, object)); err != nil {
			return err
		}
	}
	q.advance(id.resourceVersion)
	return nil
}

// bookmark publishes that the stream has reached version.
func (q *sequence) bookmark(version string) error {
	q.advance(version)
	return q.publish(Change{Type: ChangeBookmark, ResourceVersion: q.version})
}

// advance moves the version to watch from, which never goes back: a server that repeats itself
// makes no progress.
func (q *sequence) advance(version string) {
	if q.isListing || version == "" || version == q.version || ident.IsNewer(q.version, version) {
		return
	}
	q.version, q.reachedVersion = version, version
	q.tracker.forgetDeletions(version)
	q.backoff.recordProgress()
}

// expectedState returns the state that the server must have now, unless it is restored.
func (q *sequence) expectedState() expectedState {
	newest, isDeleted, _ := q.tracker.newest()
	version := q.version
	if published := newest.version.ResourceVersion(); ident.IsNewer(published, version) {
		version = published
	}
	return expectedState{stream: q.stream, version: version, newest: newest, isDeleted: isDeleted}
}

// publishMissing publishes a deletion that was not observed itself.
func (q *sequence) publishMissing(o trackedVersion) error {
	return q.publish(Change{
		Type: ChangeDeleted, Key: o.key, UID: o.version.UID(), ResourceVersion: o.version.ResourceVersion(),
	})
}

// publish yields c. It returns errStopped if the consumer has left the loop.
func (q *sequence) publish(c Change) error {
	q.record(c)
	if !q.yield(c, nil) {
		return errStopped
	}
	return nil
}

// publishError yields err. It returns errStopped if the consumer has left the loop.
func (q *sequence) publishError(err error) error {
	if !q.yield(Change{}, err) {
		return errStopped
	}
	return nil
}
