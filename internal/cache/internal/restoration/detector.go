package restoration

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Detector compares what requests are answered with and what one stream shows. All methods can be used
// concurrently.
type Detector struct {
	restorations *Restorations
	stream       wire.Stream
	// selector selects the objects of the stream by their labels. It is nil if only the server can evaluate
	// the selectors of the stream.
	selector labels.Selector
	relister Relister
	expected expectedVersions
	doubt    doubt
	// suspicions are observations that are no proof: see [Recorder.CheckOverdue].
	contradictions, suspicions spacedCounter
	// listTimer and probeTimer delay the list or the probe of this stream after a restoration that another stream
	// has found.
	listTimer, probeTimer spreadTimer
}

// selectorOf returns the selector of the labels of a stream. It returns nil if the stream has other
// selectors too, or if the selector cannot be read.
func selectorOf(s wire.Stream) labels.Selector {
	if s.FieldSelector != "" || s.ShardSelector != "" {
		return nil
	}
	selector, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return nil
	}
	return selector
}

// IsDoubted reports whether the store of the stream may show what a restoration has undone.
func (d *Detector) IsDoubted() bool { return d.doubt.isOpen() }

// DoubtedSince returns since when the store of the stream has been in doubt. It returns false if the store is not in
// doubt.
func (d *Detector) DoubtedSince() (time.Time, bool) { return d.doubt.isOpenSince() }

// SettledCount returns the number of reasons for doubt that complete lists have settled so far.
func (d *Detector) SettledCount() uint64 { return d.doubt.settledCount() }

// Expect records that the server has answered a request with an object, at version. objectLabels are the
// labels of the object in JSON. From now on the stream is expected to show the object.
func (d *Detector) Expect(k kube.Key, version, objectLabels string) {
	if d.hasToShow(objectLabels) {
		d.expected.add(k, version)
	}
}

// ShownState is what the store of a stream showed of an object before a request.
type ShownState struct {
	// Object is the zero Version if the store showed no object.
	Object ident.Version
	// ReachedVersion is the version that the store had reached.
	ReachedVersion string
	// SettledCount is what [Detector.SettledCount] returned before the request. If it returns more later, a list has
	// replaced the state.
	SettledCount uint64
}

// CheckAnswer compares the object that the server has answered a request with and the state of the store before the
// request. It returns an error to report if they contradict each other. There are two contradictions. The store has
// reached version 20 in both examples:
//
//   - the object of the answer is older than the object in the store: the answer has version 14, and the store shows the
//     same object at version 15
//   - the object of the answer is not newer than the version that the store has reached, and the store has not shown it: the
//     answer has version 18, and the store shows the object at version 15, or does not show the object
//
// Without this check a program could read the undone state from the store and the present state from the
// server in turn, and undo its own writes again and again.
func (d *Detector) CheckAnswer(before ShownState, answer ident.Version, k kube.Key, objectLabels string) error {
	isOlder := before.Object.HasSameUID(answer) && answer.Before(before.Object)
	isMissing := ident.HasReached(before.ReachedVersion, answer.ResourceVersion()) &&
		(before.Object == ident.Version{} || before.Object.Before(answer)) && d.hasToShow(objectLabels)
	if !isOlder && !isMissing || before.SettledCount != d.SettledCount() {
		return nil
	}
	return d.recordContradiction(fmt.Errorf(
		"the server has answered with resource version %s of %s, which does not fit version %s that the watch has reached",
		answer.ResourceVersion(), k, before.ReachedVersion))
}

// recordContradiction records a contradiction between what the stream shows and what the server answers. The first
// one is a proof of a restoration. recordContradiction returns an error to report if the contradiction counts.
func (d *Detector) recordContradiction(contradiction error) error {
	return d.doubtBecauseOf(contradiction, &d.contradictions, true)
}

// recordSuspicion records an observation that a restoration explains, and a watch that is slow explains too. It returns
// an error to report if the observation counts.
func (d *Detector) recordSuspicion(suspicion error) error {
	return d.doubtBecauseOf(suspicion, &d.suspicions, false)
}

// doubtBecauseOf puts the store in doubt, and asks for a list. isProof is true if the first observation that
// counter counts is a proof of a restoration. While a list is due, further observations are expected, and do not count.
func (d *Detector) doubtBecauseOf(observation error, counter *spacedCounter, isProof bool) error {
	if d.doubt.isOpen() {
		return nil
	}
	count, interval, isCounted := counter.record()
	if !isCounted {
		return nil
	}
	d.doubt.add()
	isProof = isProof && count == 1
	if isProof {
		d.restorations.recordProof(d, "") // before the list begins
	}
	d.relister.Relist()
	if isProof {
		return proofError(observation)
	}
	return fmt.Errorf("%w, for the time number %d: this kind is listed again, and not before %s for the same reason",
		observation, count, interval)
}

// listIfNeeded asks for a list if the store is in doubt and no list has begun since.
func (d *Detector) listIfNeeded() {
	if d.doubt.needsList() {
		d.relister.Relist()
	}
}

// hasToShow reports whether the stream certainly selects an object with these labels, which are JSON.
func (d *Detector) hasToShow(objectLabels string) bool {
	switch {
	case d.selector == nil:
		return false // only the server can evaluate the selectors
	case d.selector.Empty():
		return true // the stream selects all objects
	}
	set := labels.Set{}
	if objectLabels != "" && kube.Unmarshal([]byte(objectLabels), &set) != nil {
		return false
	}
	return d.selector.Matches(set)
}
