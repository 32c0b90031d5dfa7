package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// objectRecords remembers the objects whose last reconcile failed, and the deleted objects that wait for finalizers of others,
// until a reconcile succeeds or the object is gone. It holds nothing about other objects.
type objectRecords struct {
	mu    sync.Mutex
	byKey map[kube.Key]*objectRecord
	// failing is the number of objects in byKey whose last reconcile failed. The others only wait.
	failing int
}

// objectRecord is the record of one object. objectRecords.mu guards uid and isFailing. Only the worker that has the object's key
// uses the other fields.
type objectRecord struct {
	// isFailing is true if the last reconcile of the object failed.
	isFailing bool
	// uid is empty as long as the object could not be read.
	uid types.UID
	// errorCount is the number of reconciles in a row that failed for any reason.
	errorCount int
	// backoffCount is the number of failures in a row without conflicts. The back-off policy
	// sees it.
	backoffCount int
	// conflictCount is the number of conflicts in a row, and conflictsSince is the time of the
	// first of them.
	conflictCount  int
	conflictsSince time.Time
	// conflictReportAfter is how long conflicts must last before they are logged once more.
	conflictReportAfter time.Duration
	// isWaitLogged is true once a log line reports that the deleted object waits for finalizers.
	isWaitLogged bool
	throttle     logThrottle
}

func newObjectRecords() *objectRecords {
	return &objectRecords{byKey: make(map[kube.Key]*objectRecord)}
}

// recordFor returns the record of an object. It adds a record if the object has none, or if the
// record has another uid. An empty uid matches every object. The new record is not yet of a failed reconcile.
func (r *objectRecords) recordFor(k kube.Key, uid types.UID) *objectRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.byKey[k]
	if !ok || uid != "" && found.uid != "" && found.uid != uid {
		r.removeLocked(k)
		found = &objectRecord{}
		r.byKey[k] = found
	}
	if uid != "" {
		found.uid = uid
	}
	return found
}

// hasRecord reports whether the last reconcile of an object failed, or the object waits for finalizers of others.
func (r *objectRecords) hasRecord(k kube.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.byKey[k]
	return ok
}

// forget removes the record of an object. An empty uid matches every object.
func (r *objectRecords) forget(k kube.Key, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.byKey[k]; ok && (uid == "" || found.uid == uid) {
		r.removeLocked(k)
	}
}

func (r *objectRecords) removeLocked(k kube.Key) {
	if found := r.byKey[k]; found != nil && found.isFailing {
		r.failing--
	}
	delete(r.byKey, k)
}

// recordError records that the reconcile of an object failed, and returns the record of the object.
func (r *objectRecords) recordError(k kube.Key, uid types.UID) *objectRecord {
	found := r.recordFor(k, uid)
	found.errorCount++
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey[k] == found && !found.isFailing {
		found.isFailing = true
		r.failing++
	}
	return found
}

// failingCount returns the number of objects whose last reconcile failed.
func (r *objectRecords) failingCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing
}

// recordConflict counts a conflict. It returns for how long conflicts have lasted.
func (o *objectRecord) recordConflict(now time.Time) time.Duration {
	if o.conflictCount == 0 {
		o.conflictsSince, o.conflictReportAfter = now, firstConflictReport
	}
	o.conflictCount++
	return now.Sub(o.conflictsSince)
}

// firstConflictReport is how long conflicts are retried quietly. A conflict is expected now and then.
// The usual reasons of lasting conflicts are another writer of the same field, and a child whose
// deletion does not end.
const firstConflictReport = time.Minute

// logThrottle counts how often the same text came in a row.
type logThrottle struct {
	text  string
	count int
}

// record counts an occurrence of text, and returns how often text has come in a row.
func (t *logThrottle) record(text string) int {
	if text != t.text {
		t.text, t.count = text, 0
	}
	t.count++
	return t.count
}

// shouldLog reports whether the count-th occurrence of a text in a row should be logged: the
// first, the second, the fourth, the eighth and so on.
func shouldLog(count int) bool { return count&(count-1) == 0 }
