package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// failures remembers the objects whose last reconcile failed, and the deleted objects that wait for finalizers of others,
// until a reconcile succeeds or the object is gone. It holds nothing about other objects.
type failures struct {
	mu    sync.Mutex
	byKey map[kube.Key]*failure
	// failing is the number of objects in byKey whose last reconcile failed. The others only wait.
	failing int
}

// failure is the record of one object. failures.mu guards uid and isFailing. Only the worker that has the object's key
// uses the other fields.
type failure struct {
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

func newFailures() *failures { return &failures{byKey: make(map[kube.Key]*failure)} }

// failureFor returns the record of an object. It adds a record if the object has none, or if the
// record has another uid. An empty uid matches every object. The new record is not yet of a failed reconcile.
func (f *failures) failureFor(k kube.Key, uid types.UID) *failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.byKey[k]
	if !ok || uid != "" && found.uid != "" && found.uid != uid {
		f.removeLocked(k)
		found = &failure{}
		f.byKey[k] = found
	}
	if uid != "" {
		found.uid = uid
	}
	return found
}

// hasRecord reports whether the last reconcile of an object failed, or the object waits for finalizers of others.
func (f *failures) hasRecord(k kube.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.byKey[k]
	return ok
}

// forget removes the record of an object. An empty uid matches every object.
func (f *failures) forget(k kube.Key, uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found, ok := f.byKey[k]; ok && (uid == "" || found.uid == uid) {
		f.removeLocked(k)
	}
}

func (f *failures) removeLocked(k kube.Key) {
	if found := f.byKey[k]; found != nil && found.isFailing {
		f.failing--
	}
	delete(f.byKey, k)
}

// recordError records that the reconcile of an object failed, and returns the record of the object.
func (f *failures) recordError(k kube.Key, uid types.UID) *failure {
	found := f.failureFor(k, uid)
	found.errorCount++
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey[k] == found && !found.isFailing {
		found.isFailing = true
		f.failing++
	}
	return found
}

// failingCount returns the number of objects whose last reconcile failed.
func (f *failures) failingCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing
}

// recordConflict counts a conflict. It returns for how long conflicts have lasted.
func (f *failure) recordConflict(now time.Time) time.Duration {
	if f.conflictCount == 0 {
		f.conflictsSince, f.conflictReportAfter = now, firstConflictReport
	}
	f.conflictCount++
	return now.Sub(f.conflictsSince)
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
