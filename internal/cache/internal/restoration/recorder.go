package restoration

import (
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Recorder receives what one stream does. It must not be used concurrently.
type Recorder struct {
	detector     *Detector
	restorations *Restorations
	// isListed is true once a list is complete, and isListing is true within a list.
	isListed, isListing bool
	// proofCount and restorationCount are the counts when the list began.
	proofCount, restorationCount uint64
	// isProven is true from a proof by the watch on, until the next list is complete.
	isProven bool
	// versionBeforeProof is the version that the stream had reached before the proof.
	versionBeforeProof string
	// watchOpened is the time at which the last watch was opened.
	watchOpened time.Time
}

// maxDelay is longer than a server needs to show a change on an open watch.
const maxDelay = time.Minute

// RecordWatchOpened records that a watch was opened.
func (r *Recorder) RecordWatchOpened() { r.watchOpened = time.Now() }

// Advance records that the stream has reached version. The change at version is of the object of k. For a
// bookmark k is empty. Advance returns an error if the watch has passed an expected version without showing
// its object. That is a proof, and a fresh list is asked for. Within a list Advance does nothing, because
// the versions of objects are in no order.
func (r *Recorder) Advance(version string, k kube.Key) error {
	if r.isListing {
		return nil
	}
	passed, before := r.detector.expected.advance(version)
	for _, e := range passed {
		isShown := e.version == version && e.key.Namespace == k.Namespace && e.key.Name == k.Name
		if !isShown && !r.isProven {
			r.isProven, r.versionBeforeProof = true, before
			r.detector.recordProof()
			return e.lossError()
		}
	}
	return nil
}

// CheckOverdue asks for a fresh list if the watch is open for longer than a change needs, and has not reached
// a version that was expected before the watch was opened. A restored server with lower versions sends
// nothing that passes the expected version.
func (r *Recorder) CheckOverdue() {
	d := r.detector
	if r.isProven || time.Since(r.watchOpened) > maxDelay && d.expected.hasOlderThan(r.watchOpened) {
		d.recordProof()
	}
}

// ForgetExpected forgets the expected versions: a change could not be read, and may be one of them.
func (r *Recorder) ForgetExpected() { r.detector.expected.forget() }

// BeginList records that the stream begins a list.
func (r *Recorder) BeginList() {
	r.isListing = true
	r.restorationCount = r.restorations.count.Load()
	r.proofCount = r.detector.proofs.current()
	r.detector.expected.beginList()
}

// ListResult is what a complete list shows about a restoration.
type ListResult struct {
	// IsRestoration reports whether the server was restored.
	IsRestoration bool
	// Kept is the version up to which the server has lost nothing.
	Kept string
	// Err is the error to report, or nil.
	Err error
}

// CheckList compares a complete list at version, and what the stream had reached and expected.
func (r *Recorder) CheckList(version string) ListResult {
	d := r.detector
	f := ListResult{Kept: version}
	f.IsRestoration = r.isListed && (r.isProven || ident.IsNewer(d.expected.version(), version))
	if lost, ok := d.expected.lostBy(version); ok && !f.IsRestoration {
		f.IsRestoration, f.Err = true, lost.lossError()
	}
	if r.isProven && ident.IsNewer(version, r.versionBeforeProof) {
		f.Kept = r.versionBeforeProof
	}
	return f
}

// EndList records that the list at version is complete and in the store. f is the finding of CheckList.
// EndList reports whether the store has recovered from a restoration, which this list or another stream has
// found.
func (r *Recorder) EndList(version string, f ListResult) (isRecovered bool) {
	d := r.detector
	r.isListed, r.isListing, r.isProven = true, false, false
	d.expected.endList(version)
	isRecovered = f.IsRestoration || d.IsDoubted()
	d.proofs.settle(r.proofCount)
	if f.IsRestoration {
		r.restorations.record(d, f.Kept)
		return isRecovered
	}
	// Another stream may have found a restoration while this list ran, and found that this store is not
	// affected. If this list has the undone state all the same, the silence of the watch will show that.
	d.count.Store(max(d.count.Load(), r.restorationCount))
	return isRecovered
}
