package restoration

import (
	"errors"
	"fmt"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Recorder receives what one stream does. It must not be used concurrently.
type Recorder struct {
	detector *Detector
	// isListed is true once a list is complete, and isListing is true within a list.
	isListed, isListing bool
	// watchOpened is the time at which the last watch was opened.
	watchOpened time.Time
}

// maxDelay is longer than a server needs to show a change on an open watch.
const maxDelay = time.Minute

// RecordWatchOpened records that a watch was opened.
func (r *Recorder) RecordWatchOpened() { r.watchOpened = time.Now() }

// Advance records that the stream has reached version. The change at version is of the object of k. For a
// bookmark k is empty. Advance returns an error to report if the watch has passed an expected version without showing
// its object. That is a contradiction. Within a list Advance does nothing, because the versions of objects are in
// no order.
func (r *Recorder) Advance(version string, k kube.Key) error {
	if r.isListing {
		return nil
	}
	for _, e := range r.detector.expected.advance(version) {
		if isShown := e.version == version && e.key.Namespace == k.Namespace && e.key.Name == k.Name; !isShown {
			return r.detector.recordContradiction(e.lossError())
		}
	}
	return nil
}

// CheckOverdue asks for a list if the watch is open for longer than a change needs, and has not reached a version that
// was expected before the watch was opened. It returns an error to report if it does so. A restored server with lower
// versions sends nothing that passes the expected version. A watch that lags is silent too. So only the list shows
// whether the server was restored.
func (r *Recorder) CheckOverdue() error {
	if time.Since(r.watchOpened) <= maxDelay {
		return nil
	}
	e, ok := r.detector.expected.olderThan(r.watchOpened)
	if !ok {
		return nil
	}
	return r.detector.recordSuspicion(fmt.Errorf("the watch has not shown resource version %s of %s for more than %s",
		e.version, e.key, maxDelay))
}

// RecordLoss records that a probe has found a loss: the server has lost what the stream has shown. That puts the store
// in doubt, and asks the stream for a list, like any contradiction. The stream would list after the probe without that
// request too.
func (r *Recorder) RecordLoss() {
	_ = r.detector.recordContradiction(errors.New("the server has lost what it has shown before")) // reported already
}

// ForgetExpected forgets the expected versions: a change could not be read, and may be one of them.
func (r *Recorder) ForgetExpected() { r.detector.expected.forget() }

// BeginList records that the stream begins a list.
func (r *Recorder) BeginList() {
	r.isListing = true
	r.detector.doubt.beginList()
	r.detector.expected.beginList()
}

// ListResult is what a complete list means for the doubt about the store.
type ListResult struct {
	// IsDoubtSettled reports whether the store is no longer in doubt once it has the list. IsRestoration reports
	// whether the reason for the doubt was a restoration.
	IsDoubtSettled, IsRestoration bool
	// settlesAll reports whether the list settles all reasons for doubt, also those from after its beginning.
	settlesAll bool
	// Err is the error to report, or nil.
	Err error
}

// RecordList records that a list at version is complete. The store does not have its version yet. A version lower than
// what the stream had reached, or expected, is a proof.
func (r *Recorder) RecordList(version string) ListResult {
	d := r.detector
	proof := error(nil)
	if lost, ok := d.expected.lostBy(version); ok {
		proof = lost.lossError()
	} else if reached := d.expected.reachedVersion(); r.isListed && ident.IsNewer(reached, version) {
		proof = fmt.Errorf("the server is at resource version %s, and has been at %s", version, reached)
	}
	if proof == nil {
		return r.resultWithoutProof()
	}
	result := ListResult{settlesAll: true, IsDoubtSettled: true, IsRestoration: true}
	if d.restorations.recordProof(d, version) {
		result.Err = proofError(proof)
	}
	return result
}

// RecordUnserved records that the server does not serve the kind. The version of such a list proves nothing. A store
// without objects is not in doubt, because nothing is listed before the server serves the kind.
func (r *Recorder) RecordUnserved() ListResult {
	r.detector.doubt.recordUnserved()
	result := r.resultWithoutProof()
	result.IsDoubtSettled, result.settlesAll = result.IsDoubtSettled || r.detector.doubt.isOpen(), true
	return result
}

// resultWithoutProof returns the result of a list that proves nothing.
func (r *Recorder) resultWithoutProof() ListResult {
	doubt := &r.detector.doubt
	isSettled := doubt.isSettledByList()
	return ListResult{IsDoubtSettled: isSettled, IsRestoration: isSettled && doubt.isDueToRestoration()}
}

// EndList records that the store has the list at version, with the result of [Recorder.RecordList].
func (r *Recorder) EndList(version string, result ListResult) {
	r.isListed, r.isListing = true, false
	r.detector.expected.endList(version)
	r.detector.doubt.endList(result.settlesAll)
}

// proofError returns the error to report about a proof.
func proofError(proof error) error {
	return fmt.Errorf("%w, as after a restored backup: everything is listed again", proof)
}
