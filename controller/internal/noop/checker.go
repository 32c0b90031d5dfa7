// Package noop skips applies that would change nothing.
//
// An apply is skipped only if the current state of the object is known without a request, and a change to it would
// trigger this very reconcile. One of three must also hold:
//
//  1. The last apply of this manager, subresource and uid had this very content and was
//     answered at exactly the version that is current.
//  2. The current object, without its version, its status and the entries of other managers,
//     is what it was after that apply. So changes of the status, defaults, webhooks and
//     1000m in place of 1 cost nothing.
//  3. The managedFields entry of this manager covers exactly the fields of the apply, and
//     each field has the value of the apply. This rule holds after a restart.
//
// If the cache keeps only the metadata of the object, such as of a Secret, only the first
// rule applies. No content is kept for it, only a digest.
//
// If one of these is not certain, the apply is sent. Every apply of [kube.Client.Live] is sent. Failures
// are not remembered.
//
// An example. The manager "webapp" applies {replicas: 2}, and the server answers with version 12 and
// the state {replicas: 2, strategy: RollingUpdate}, in which strategy is a default. Later:
//
//	the current object                                  the next apply of {replicas: 2}
//	version 12                                          is skipped by rule 1
//	version 13: a controller wrote the status           is skipped by rule 2, the state is the same
//	version 14: somebody scaled to 3                    is sent
//	version 15: {replicas: 2}, the program restarted    is skipped by rule 3
package noop

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature/contested"
	"github.com/yare-go/yare/kube/wire"
)

// View is the cache as the controller may see it: see [cache.View].
type View interface {
	KnownState(ref wire.Ref) cache.KnownState
}

// IsTrigger reports whether a change to an object of resource r, whose known state is current, would trigger the
// reconcile that is under way.
type IsTrigger func(r wire.Resource, current *cache.KnownState) bool

// Checker remembers the applies of one controller, to find those that would change nothing.
// It is safe for concurrent use.
type Checker struct {
	view View
	// reportSetBack is called with the fields that an apply has set back. It may be nil.
	reportSetBack func(object wire.Ref, fields []contested.Field)
	// seed is random and part of every digest. So nobody can compare the digest of a Secret with the
	// digests of guesses.
	seed [sha256.BlockSize]byte

	mu sync.Mutex
	// last holds the last apply of each key.
	last map[applyKey]applied
	// sweepAt is the number of entries at which the entries of deleted objects are dropped.
	sweepAt int
}

// NewChecker returns a Checker that finds current objects in view. It calls reportSetBack, which may be nil, with the
// fields that somebody had changed since the last apply of the same content, and that an apply has set back.
func NewChecker(view View, reportSetBack func(object wire.Ref, fields []contested.Field)) *Checker {
	c := &Checker{view: view, reportSetBack: reportSetBack, last: make(map[applyKey]applied), sweepAt: firstSweep}
	_, _ = rand.Read(c.seed[:]) // never fails
	return c
}

// firstSweep is the least number of entries that is worth a sweep.
const firstSweep = 256

// applyKey names one manager's applies to one object. Ref has no UID.
type applyKey struct {
	object      wire.Ref
	manager     string
	subresource string
}

type digest [sha256.Size]byte

// applied describes an apply that succeeded. It is a fact about a past state of the object
// and stays true. To replace it late, or not at all, costs one request.
type applied struct {
	uid           types.UID
	contentDigest digest
	// version is the version in the answer to the apply, or a later version at which the apply would
	// have changed nothing.
	version string
	// stateDigest is the digest of the object at that version: see knownObject.stateDigest.
	stateDigest digest
}

// Handler returns a handler that skips the applies without effect, and passes all other requests to
// next. The answer to a skipped apply is the current object. If the cache keeps only its metadata, the
// answer is the applied object with the current metadata.
func (c *Checker) Handler(next wire.Handler, isTrigger IsTrigger) wire.Handler {
	return &handler{Checker: c, next: next, isTrigger: isTrigger}
}

type handler struct {
	*Checker
	next      wire.Handler
	isTrigger IsTrigger
}

// ForgetAll drops all that is remembered. The next apply of each object is compared by the current
// object's managedFields only, or sent.
func (c *Checker) ForgetAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.last)
}

func (c *Checker) lastApplied(k applyKey) (applied, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[k]
	return last, ok
}

// recordApplied records an apply, and sweeps if there are many entries.
func (c *Checker) recordApplied(k applyKey, now applied) {
	c.mu.Lock()
	c.last[k] = now
	var entries map[applyKey]applied
	if len(c.last) >= c.sweepAt {
		entries = maps.Clone(c.last)
	}
	c.mu.Unlock()
	if entries != nil {
		c.sweep(entries)
	}
}

// sweep forgets the applies to objects that the cache does not show any more. entries is a copy of c.last.
func (c *Checker) sweep(entries map[applyKey]applied) {
	for k, last := range entries {
		if current := c.view.KnownState(k.object); current.IsPresent && current.Record.UID == last.uid {
			delete(entries, k)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, last := range entries {
		if c.last[k] == last {
			delete(c.last, k)
		}
	}
	c.sweepAt = max(firstSweep, 2*len(c.last))
}

func (c *Checker) forgetKey(k applyKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, k)
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Verb != wire.VerbPatch || r.ContentType != wire.ContentApply ||
		r.Subresource != "" && r.Subresource != "status" || r.Query.Get("dryRun") != "" {
		return h.next.Do(ctx, r)
	}
	a, err := parseApply(r, h.seed[:])
	if err != nil {
		return h.next.Do(ctx, r)
	}
	ref := r.Ref()
	ref.UID = ""
	k := applyKey{object: ref, manager: r.Query.Get("fieldManager"), subresource: r.Subresource}
	var current *knownObject
	if !r.Live {
		current = h.findKnownObject(ref)
	}
	isRepeated := current != nil && !current.isMetadataOnly && h.reportSetBack != nil && h.isRepeated(k, a, current)
	if current != nil && a.meetsPreconditions(current) {
		if now, isUnchanged := h.check(k, a, current); isUnchanged {
			if body, err := current.answer(a); err == nil {
				h.recordApplied(k, now)
				return &wire.Response{Code: http.StatusOK, Body: body, Cached: true}, nil
			}
		}
	}
	response, err := h.next.Do(ctx, r)
	if err != nil {
		h.forgetKey(k)
		return nil, err
	}
	h.recordAnswer(k, a, response.Body)
	if isRepeated {
		if fields, err := contested.SetBack(a.body, current.object, response.Body, k.manager); err == nil && len(fields) > 0 {
			h.reportSetBack(ref, fields)
		}
	}
	return response, nil
}

// isRepeated reports whether the last apply to the current object had the content of a.
func (h *handler) isRepeated(k applyKey, a *apply, current *knownObject) bool {
	last, isKnown := h.lastApplied(k)
	return isKnown && last.uid == current.uid && last.contentDigest == a.contentDigest
}

// recordAnswer records an apply that was answered with object.
func (h *handler) recordAnswer(k applyKey, a *apply, object []byte) {
	current := &knownObject{object: object}
	state, err := current.stateDigest(k, a, h.seed[:])
	if err == nil {
		err = current.readIdentity()
	}
	if err != nil {
		h.forgetKey(k)
		return
	}
	h.recordApplied(k,
		applied{uid: current.uid, contentDigest: a.contentDigest, version: current.version, stateDigest: state})
}

// findKnownObject returns the object as it certainly is, or nil.
func (h *handler) findKnownObject(ref wire.Ref) *knownObject {
	current := h.view.KnownState(ref)
	// The server decides what an apply can do to an object that is being deleted.
	if !current.IsPresent || current.Record.Deleting || !h.isTrigger(ref.Resource, &current) {
		return nil
	}
	object, err := current.Bytes()
	if err != nil {
		return nil
	}
	return &knownObject{
		object: object, uid: current.Record.UID, version: current.Record.ResourceVersion,
		isMetadataOnly: current.Representation == wire.MetadataOnly,
	}
}

// check reports whether the apply would change nothing. If so, it returns what to remember of the apply.
func (h *handler) check(k applyKey, a *apply, current *knownObject) (now applied, isUnchanged bool) {
	last, known := h.lastApplied(k)
	known = known && last.uid == current.uid && last.contentDigest == a.contentDigest
	if known && last.version == current.version {
		return last, true
	}
	if current.isMetadataOnly {
		return applied{}, false
	}
	state, err := current.stateDigest(k, a, h.seed[:])
	if err != nil || !(known && last.stateDigest == state) && !current.isOwnedExactly(k, a) {
		return applied{}, false
	}
	return applied{uid: current.uid, contentDigest: a.contentDigest, version: current.version, stateDigest: state}, true
}
