package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/controller/internal/queue"
	"github.com/yare-go/yare/kube"
)

// unfinishedObjects remembers the objects whose last reconcile failed, and the deleted objects that wait for finalizers
// of others. An object is forgotten once a reconcile succeeds or the object is gone. Nothing is remembered about other
// objects.
//
// Example: the reconcile of web fails twice, so web is added with the errorCount 1, and then has the errorCount 2. The
// next reconcile succeeds, and web is forgotten.
type unfinishedObjects struct {
	mu    sync.Mutex
	byKey map[kube.Key]*unfinishedEntry
	// retriedCount is the number of entries in byKey with isRetried.
	retriedCount int
}

// unfinishedEntry is the entry of one object in unfinishedObjects.byKey.
type unfinishedEntry struct {
	// isRetried is true if the last reconcile of the object failed and is retried. Other objects wait for others, or for a
	// change.
	isRetried bool
	// uid is empty as long as the object could not be read.
	uid types.UID
	// object is of the worker that has the object's key, and of no other goroutine.
	object *unfinishedObject
}

// unfinishedObject is what a worker remembers of one object. Only the worker that has the object's key uses the fields.
type unfinishedObject struct {
	// errorCount is the number of reconciles in a row that failed for any reason.
	errorCount int
	// failingSince is the time of the first of them.
	failingSince time.Time
	// backoff is the wait after failures in a row without conflicts. The back-off policy sees its attempts.
	backoff queue.RetryWait
	// conflictCount is the number of conflicts in a row, conflictsSince is the time of the first of them, and conflictWait
	// is the wait after them.
	conflictCount  int
	conflictsSince time.Time
	conflictWait   queue.RetryWait
	// conflictReportAfter is how long conflicts must last before they are logged once more.
	conflictReportAfter time.Duration
	// isWaitLogged is true once a log line reports that the deleted object waits for finalizers.
	isWaitLogged bool
	throttle     logThrottle
}

func newUnfinishedObjects() *unfinishedObjects {
	return &unfinishedObjects{byKey: make(map[kube.Key]*unfinishedEntry)}
}

// recordWait records that the object of a key waits for finalizers of others, so that nothing fails for the object any
// more. It returns what is remembered of the object.
func (u *unfinishedObjects) recordWait(k kube.Key, uid types.UID) *unfinishedObject {
	u.mu.Lock()
	defer u.mu.Unlock()
	found := u.findOrAddLocked(k, uid)
	u.setRetriedLocked(found, false)
	return found.object
}

// setRetriedLocked sets the field isRetried of an entry, and keeps retriedCount.
func (u *unfinishedObjects) setRetriedLocked(e *unfinishedEntry, isRetried bool) {
	if e.isRetried && !isRetried {
		u.retriedCount--
	} else if !e.isRetried && isRetried {
		u.retriedCount++
	}
	e.isRetried = isRetried
}

// findOrAddLocked returns the entry of the object of a key. It adds the object if nothing is remembered of it. It
// replaces an object with another uid. An empty uid matches every object. The last reconcile of a new object counts as
// not failed.
func (u *unfinishedObjects) findOrAddLocked(k kube.Key, uid types.UID) *unfinishedEntry {
	found, ok := u.byKey[k]
	if !ok || uid != "" && found.uid != "" && found.uid != uid {
		u.removeLocked(k)
		found = &unfinishedEntry{object: new(unfinishedObject)}
		u.byKey[k] = found
	}
	if uid != "" {
		found.uid = uid
	}
	return found
}

// isUnfinished reports whether the last reconcile of the object of a key failed, or the object waits for finalizers of
// others.
func (u *unfinishedObjects) isUnfinished(k kube.Key) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.byKey[k]
	return ok
}

// forget removes what is remembered of the object of a key. An empty uid matches every object.
func (u *unfinishedObjects) forget(k kube.Key, uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if found, ok := u.byKey[k]; ok && (uid == "" || found.uid == uid) {
		u.removeLocked(k)
	}
}

func (u *unfinishedObjects) removeLocked(k kube.Key) {
	if found := u.byKey[k]; found != nil {
		u.setRetriedLocked(found, false)
	}
	delete(u.byKey, k)
}

// recordError records that the reconcile of an object failed, and whether it is retried. It returns what is remembered
// of the object.
func (u *unfinishedObjects) recordError(k kube.Key, uid types.UID, isRetried bool) *unfinishedObject {
	u.mu.Lock()
	defer u.mu.Unlock()
	found := u.findOrAddLocked(k, uid)
	u.setRetriedLocked(found, isRetried)
	if found.object.errorCount == 0 {
		found.object.failingSince = time.Now()
	}
	found.object.errorCount++
	return found.object
}

// countRetried returns the number of objects whose last reconcile failed and is retried.
func (u *unfinishedObjects) countRetried() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.retriedCount
}

// forgetConflicts ends a row of conflicts.
func (o *unfinishedObject) forgetConflicts() { o.conflictCount, o.conflictWait = 0, queue.RetryWait{} }

// recordConflict counts a conflict at a time.
func (o *unfinishedObject) recordConflict(now time.Time) {
	if o.conflictCount == 0 {
		o.conflictsSince, o.conflictReportAfter = now, firstConflictReport
	}
	o.conflictCount++
}

// firstConflictReport is how long conflicts are retried quietly. A conflict is expected now and then.
// The usual reasons of lasting conflicts are another writer of the same field, and a child whose
// deletion does not end.
const firstConflictReport = time.Minute
