package restoration

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Detector compares what requests are answered with and what one stream shows. All methods can be used
// concurrently.
type Detector struct {
	cluster string
	// selector selects the objects of the stream by their labels. It is nil if only the server can evaluate
	// the selectors of the stream.
	selector labels.Selector
	relist   func()
	expected expectedVersions
	proofs   proofs
	// total is the restoration count of the program, and count that of the store.
	total *atomic.Uint64
	count atomic.Uint64
}

// selectorOf returns the selector of the labels of a stream. It returns nil if the stream has other
// selectors too, or if the selector cannot be read.
func selectorOf(s kube.Stream) labels.Selector {
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
func (d *Detector) IsDoubted() bool {
	return d.count.Load() < d.total.Load() || d.proofs.isDoubted()
}

// Expect records that the server has answered a request with an object, at version. objectLabels are the
// labels of the object in JSON. From now on the stream is expected to show the object.
func (d *Detector) Expect(k kube.Key, version, objectLabels string) {
	if d.hasToShow(objectLabels) {
		d.expected.add(k, version)
	}
}

// DetectorState is what the store of a stream showed of an object before a request.
type DetectorState struct {
	// Object is the zero Version if the store showed no object.
	Object ident.Version
	// Reached is the version that the store had reached.
	Reached string
}

// CheckAnswer records a proof if the server has answered a request with an object that contradicts the state
// of the store before the request. An answer is never older than the object in the store. An answer is never
// as old as the version that the store had reached, unless the store showed it.
//
// Without this check a program could read the undone state from the store and the present state from the
// server in turn, and undo its own writes again and again.
func (d *Detector) CheckAnswer(before DetectorState, answer ident.Version, objectLabels string) {
	isOlder := before.Object.HasSameUID(answer) && answer.Before(before.Object)
	isMissing := ident.HasReached(before.Reached, answer.ResourceVersion()) &&
		(before.Object == ident.Version{} || before.Object.Before(answer)) && d.hasToShow(objectLabels)
	if isOlder || isMissing {
		d.recordProof()
	}
}

// recordProof records a proof, and asks for a fresh list, at most once a minute.
func (d *Detector) recordProof() {
	if d.proofs.record() {
		d.relist()
	}
}

// hasToShow reports whether the stream certainly selects an object with these labels, which are JSON.
func (d *Detector) hasToShow(objectLabels string) bool {
	if d.selector == nil || d.selector.Empty() {
		return d.selector != nil
	}
	set := labels.Set{}
	if objectLabels != "" && kube.Unmarshal([]byte(objectLabels), &set) != nil {
		return false
	}
	return d.selector.Matches(set)
}

// minProofInterval is the least time between two lists because of proofs. A server that answers from several
// caches of its own seems to be restored all the time.
const minProofInterval = time.Minute

// proofs counts the proofs that concern one stream. The stream is in doubt from a proof on, until a list is
// complete that began after the proof. All methods can be used concurrently.
type proofs struct {
	mu    sync.Mutex
	count uint64
	// settled is the count when the latest complete list began.
	settled uint64
	last    time.Time
}

// record counts a proof. It reports false, and counts nothing, if the last proof was a moment ago.
func (p *proofs) record() (isCounted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && time.Since(p.last) < minProofInterval {
		return false
	}
	p.count++
	p.last = time.Now()
	return true
}

// current returns the count.
func (p *proofs) current() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// settle records that a list is complete. The list began when the count was count.
func (p *proofs) settle(count uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settled = count
}

// isDoubted reports whether the stream is in doubt.
func (p *proofs) isDoubted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count > p.settled
}
