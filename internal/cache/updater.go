package cache

import (
	"github.com/yare-go/yare/internal/cache/internal/database"
	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/cache/internal/progress"
	"github.com/yare-go/yare/internal/cache/internal/restoration"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/jsonscan/projection"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// updater applies the changes of a watch to the store of one stream. It belongs to the goroutine of the
// stream, and has no lock.
type updater struct {
	stream      wire.Stream
	store       *Store
	overlay     *programOverlay
	writer      *database.Writer
	progress    *progress.Progress
	restoration *restoration.Recorder
	missed      missedStates
	counts      *counts

	// isListing is true from the beginning of a list to its end. The versions of the objects in
	// between are in no order, and do not advance the store.
	isListing bool
	// listBegan is the tick at which the list began.
	listBegan overlay.Tick

	// fields are the fields that the objects are reduced to. It is nil if the stream is not one of
	// a projection.
	fields *projection.Fields
	// projected is a buffer for an object that is reduced to fields.
	projected []byte
	// changes is a buffer for the result of apply.
	changes []Change
	// failures holds the errors that are to be reported after the change.
	failures []error
	// listResult is the result of the list that the change has completed.
	listResult restoration.ListResult
}

func newUpdater(
	s *Store, o *programOverlay, w *database.Writer, p *progress.Progress, r *restoration.Recorder, n *counts,
) *updater {
	u := &updater{stream: s.Stream(), store: s, overlay: o, writer: w, progress: p, restoration: r, counts: n}
	if fields, ok := s.Stream().Representation.ProjectedFields(); ok {
		u.fields = projection.Parse(fields)
	}
	u.missed = newMissedStates(s, o.Overlay, w, u.fields)
	return u
}

// apply applies one change to the store, and returns the changes to publish. The slice is valid until the
// next call.
func (u *updater) apply(c follow.Change) []Change {
	u.changes = u.changes[:0]
	switch c.Type {
	case follow.ChangeAdded, follow.ChangeModified:
		u.put(c)
	case follow.ChangeDeleted:
		u.remove(c)
	case follow.ChangeListStarted:
		u.beginList()
	case follow.ChangeListed:
		u.endList(c.ResourceVersion, c.IsUnserved)
	case follow.ChangeUnlisted:
		u.store.isUnlisted.Store(true)
		u.changes = append(u.changes, Change{Type: Unlisted})
	case follow.ChangeBookmark:
		u.advance(c.ResourceVersion, kube.Key{})
		u.recordStreamError(u.restoration.CheckOverdue())
		u.overlay.sweep() // a program that writes nothing has overlay entries too
	case follow.ChangeWatchOpened:
		u.restoration.RecordWatchOpened()
		u.progress.RecordWatch(true)
		u.overlay.sweep()
	case follow.ChangeWatchEnded:
		u.recordStreamError(u.restoration.CheckOverdue())
		u.progress.RecordWatch(false)
		u.overlay.MarkOld(u.store.collection())
	}
	return u.changes
}

// put puts an object into the store.
func (u *updater) put(c follow.Change) {
	object := c.Object
	if u.fields != nil {
		var err error
		if u.projected, err = u.fields.AppendObject(u.projected[:0], c.Object); err == nil {
			object = u.projected
		}
	}
	item := database.NewItem(c.Key, c.UID, c.ResourceVersion, object).WithMetadata(c.Metadata)
	if u.writer.Has(item) {
		u.advance(c.ResourceVersion, c.Key)
		return
	}
	change := Change{Type: Added, Missed: u.isListing && u.missed.hasMissedStateOf(c)}
	// This comes before the store changes: a reader that finds the change in this store must know that other stores do
	// not have it yet. See View.isCurrent.
	u.progress.RecordChange(c.Key.Namespace, c.ResourceVersion, u.isListing)
	before, after, err := u.writer.Put(item)
	u.advance(c.ResourceVersion, c.Key)
	if err != nil {
		// The new content is kept, although it does not decode: the old content is stale.
		u.counts.decodeFailures.Add(1)
		u.recordFailure(&wire.DecodeError{Ref: u.ref(c), ResourceVersion: c.ResourceVersion, Err: err})
	}
	if before != nil && !before.IsSameObject(after) {
		u.addDeleted(before)
	} else if before != nil {
		change.Type, change.Before, change.before = Modified, recordOfObject(before, c.UID), before
	}
	if u.isListing {
		u.addMissed(u.missed.predecessorsOf(c, before))
	}
	u.overlay.dropObserved(overlay.KeyOf(u.ref(c)))
	change.After, change.after = recordOfObject(after, c.UID), after
	u.changes = append(u.changes, change)
}

// remove removes an object from the store.
func (u *updater) remove(c follow.Change) {
	version := c.ResourceVersion
	if c.Object == nil { // the deletion was not observed: the version is that of the last state
		version = ""
	}
	if u.store.database.Get(c.Key) == nil {
		u.advance(version, c.Key)
		return
	}
	u.progress.RecordChange(c.Key.Namespace, version, u.isListing)
	before := u.writer.Remove(c.Key)
	u.advance(version, c.Key)
	u.overlay.dropObserved(overlay.KeyOf(u.ref(c)))
	u.addDeleted(before)
}

// advance records that all changes up to version are in the store. The change at version is of the object of
// k, which is empty for a bookmark.
func (u *updater) advance(version string, k kube.Key) {
	if u.isListing {
		return
	}
	u.writer.Advance(version)
	u.recordStreamError(u.restoration.Advance(version, k))
}

// recordStreamError records an error of the stream for the report: a contradiction, a suspicion, or a restoration. err
// may be nil.
func (u *updater) recordStreamError(err error) {
	if err != nil {
		u.counts.errors.Add(1)
		u.recordFailure(&RestorationError{Err: err})
	}
}

// beginList records that the stream lists anew. The list shows the effects of every write that
// the overlay has now.
func (u *updater) beginList() {
	u.listBegan = u.overlay.Begin()
	u.store.listBegan.Store(uint64(u.listBegan))
	u.store.isUnserved.Store(false)
	u.restoration.BeginList()
	u.isListing = true
	u.progress.RecordListStarted()
}

// endList records that a list is complete. endList also publishes the deletions that neither a watch nor the
// list could show. If the server does not serve the resource, the version proves nothing about a restoration.
func (u *updater) endList(version string, isUnserved bool) {
	missed := u.missed.afterList(version, u.listBegan) // before a restoration invalidates the entries of the overlay
	var result restoration.ListResult
	if isUnserved {
		result = u.restoration.RecordUnserved()
	} else {
		result = u.restoration.RecordList(version)
	}
	u.store.isUnserved.Store(isUnserved)
	if isUnserved {
		u.store.absence.Store(&absence{began: u.listBegan, version: version})
	} else {
		u.store.absence.Store(nil)
	}
	u.recordStreamError(result.Err)
	if result.IsDoubtSettled {
		// Other streams of the same objects may be behind this list.
		u.overlay.InvalidateUntil(u.store.collection(), u.listBegan, version)
	}
	if u.writer.Complete(version) {
		u.changes = append(u.changes, Change{Type: Synced})
	}
	u.addMissed(missed)
	u.counts.lists.Add(1)
	u.isListing = false
	if !isUnserved { // the absence of the kind has no version: its deletions are in no other store before a list
		u.progress.RecordListed(version)
	}
	u.restoration.EndList(version, result)
	u.listResult = result
}

// addMissed adds to the changes the deletions that the stream has missed within a list.
func (u *updater) addMissed(missed []*database.PackedObject) {
	for _, p := range missed {
		u.progress.RecordChange(p.Namespace(), "", u.isListing)
		u.addDeleted(p)
	}
}

// addDeleted adds to the changes the deletion of an object, whose last state is p.
func (u *updater) addDeleted(p *database.PackedObject) {
	u.changes = append(u.changes, Change{Type: Deleted, Before: recordOf(p), before: p})
}

// markUndecodable records that a change could not be decoded.
func (u *updater) markUndecodable(err *wire.DecodeError) {
	u.writer.MarkUndecodable(err)
	u.restoration.ForgetExpected() // the change may be an expected one
	u.counts.decodeFailures.Add(1)
}

// recordFailure records an error that is to be reported after the change.
func (u *updater) recordFailure(err error) { u.failures = append(u.failures, err) }

// takeFailures removes and returns the errors that are to be reported.
func (u *updater) takeFailures() []error {
	failures := u.failures
	u.failures = nil
	return failures
}

// takeListResult removes and returns the result of the list that the change has completed.
func (u *updater) takeListResult() restoration.ListResult {
	result := u.listResult
	u.listResult = restoration.ListResult{}
	return result
}

func (u *updater) ref(c follow.Change) wire.Ref {
	return wire.Ref{
		Cluster: u.stream.Cluster, Resource: u.stream.Resource, Namespace: c.Key.Namespace, Name: c.Key.Name, UID: c.UID,
	}
}

// RestorationError is an error of a stream whose server was restored from a backup, or contradicts what it has shown.
// The stream lists its objects again, and no request has failed.
type RestorationError struct{ Err error }

func (e *RestorationError) Error() string { return e.Err.Error() }

func (e *RestorationError) Unwrap() error { return e.Err }
