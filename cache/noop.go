package cache

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// Applies is what one controller's applies came to, so that those that would change
// nothing need not be sent.
type Applies struct {
	caches *Cache

	mu   sync.Mutex
	last map[applyKey]applied
	// sweepAt is the number of entries at which those of objects that are gone are dropped.
	sweepAt int
}

// Applies makes the memory of one controller.
func (c *Cache) Applies() *Applies {
	return &Applies{caches: c, last: make(map[applyKey]applied), sweepAt: firstApplySweep}
}

// firstApplySweep is the least number of entries that is worth a look.
const firstApplySweep = 256

type applyKey struct {
	object      overlayKey
	resource    kube.Resource
	manager     string
	subresource string
}

type digest [sha256.Size]byte

// applied is an apply that succeeded. It is a fact about an object of the past, and stays
// one: that it is replaced late, or not at all, costs a request and no more.
type applied struct {
	uid     types.UID
	content digest
	// version is the one that it was answered at, or at which it was seen since that it
	// would change nothing.
	version string
	// state is that of the object at that version: see liveObject.state.
	state digest
}

// SkipUnchanged is a handler that does not send an apply that would change nothing. It
// goes outside of [Cache.Handler].
//
// An apply is skipped only if the live object is in a synced store, is not in doubt, and
// triggers says that its changes run this very reconcile again; and if
//
//  1. the last apply of this manager, subresource and uid had this very content and was
//     answered at exactly the version that is live; or
//  2. what is live, without its version, its status and the entries of other managers, is
//     what it was after that apply: so that statuses that come and go, defaults, webhooks
//     and 1000m in place of 1 cost nothing; or
//  3. as after a restart, the managedFields of this manager are exactly the fields that
//     are wanted, and each has the wanted value.
//
// In any doubt it is sent. What failed is not remembered.
func (a *Applies) SkipUnchanged(next kube.Handler, triggers Triggers) kube.Handler {
	return &skipUnchanged{Applies: a, next: next, triggers: triggers}
}

// Triggers tells whether a change of an object, of which there are the record and the
// bytes, runs the reconcile again that is being run now.
type Triggers func(r kube.Resource, record Record, object []byte) bool

type skipUnchanged struct {
	*Applies
	next     kube.Handler
	triggers Triggers
}

func (a *Applies) get(k applyKey) (applied, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.last[k]
	return last, ok
}

func (a *Applies) put(k applyKey, now applied) {
	a.mu.Lock()
	a.last[k] = now
	var all map[applyKey]applied
	if len(a.last) >= a.sweepAt {
		all = maps.Clone(a.last)
	}
	a.mu.Unlock()
	if all != nil {
		a.sweep(all)
	}
}

// sweep forgets objects that are gone, and those of kinds that are not watched (any more).
func (a *Applies) sweep(all map[applyKey]applied) {
	for k, last := range all {
		if f, ok := a.caches.shows(k.object, k.resource); ok && f.present && f.record.UID == last.uid {
			delete(all, k)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, last := range all {
		if a.last[k] == last {
			delete(a.last, k)
		}
	}
	a.sweepAt = max(firstApplySweep, 2*len(a.last))
}

func (a *Applies) forget(k applyKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, k)
}

// Do serves one request.
func (h *skipUnchanged) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	if r.Verb != kube.VerbPatch || r.ContentType != kube.ContentApply ||
		r.Subresource != "" && r.Subresource != "status" || r.Query.Get("dryRun") != "" {
		return h.next.Do(ctx, r)
	}
	want, err := scanApply(r)
	if err != nil {
		return h.next.Do(ctx, r)
	}
	k := applyKey{object: keyOf(r.Ref()), resource: r.Resource, manager: r.Query.Get("fieldManager"), subresource: r.Subresource}
	if live := h.live(r, k.object); live != nil && want.meant(live) && h.unchanged(k, want, live) {
		return &kube.Response{Code: http.StatusOK, Body: live.object, Cached: true}, nil
	}
	response, err := h.next.Do(ctx, r)
	if err != nil {
		h.forget(k)
		return nil, err
	}
	h.remember(k, want, response.Body)
	return response, nil
}

// remember notes an apply that succeeded.
func (h *skipUnchanged) remember(k applyKey, want *wanted, answer []byte) {
	record, err := recordOf(answer)
	live := &liveObject{object: answer, Record: record}
	if err != nil || live.UID == "" || live.ResourceVersion == "" {
		h.forget(k)
		return
	}
	state, err := live.state(k, want)
	if err != nil {
		h.forget(k)
		return
	}
	h.put(k, applied{uid: live.UID, content: want.content, version: live.ResourceVersion, state: state})
}

// live is the object as it certainly is, or nil.
func (h *skipUnchanged) live(r *kube.Request, k overlayKey) *liveObject {
	c := h.caches
	store, _ := c.showing(k, r.Resource, kube.Full)
	if store == nil {
		return nil
	}
	for _, d := range c.overlay.doubted(scopeOf(r)) {
		if d.version == "" || !reached(store.Version(), d.version) {
			return nil
		}
	}
	f := c.look(store, k, r.Resource, kube.Full)
	if !f.sure || !f.present {
		return nil
	}
	body, err := f.bytes()
	if err != nil {
		return nil
	}
	live := &liveObject{object: body, Record: f.record}
	if f.written != nil {
		if live.Record, err = recordOf(body); err != nil {
			return nil
		}
	}
	// Of one that is being deleted it is for the server to say what can be done.
	if live.Deleting || !h.triggers(r.Resource, live.Record, body) {
		return nil
	}
	return live
}

func (h *skipUnchanged) unchanged(k applyKey, want *wanted, live *liveObject) bool {
	last, known := h.get(k)
	known = known && last.uid == live.UID && last.content == want.content
	if known && last.version == live.ResourceVersion {
		return true
	}
	state, err := live.state(k, want)
	if err != nil || !(known && last.state == state) && !live.owns(k, want) {
		return false
	}
	h.put(k, applied{uid: live.UID, content: want.content, version: live.ResourceVersion, state: state})
	return true
}
