package cache

import (
	"maps"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

// overlay holds what this program's own writes were answered with, until the streams show
// it: a read that takes the newer of the two is never older than the write, and never
// waits. What the answer of a write does not tell for certain is a doubt, and costs the
// next read one request.
//
// Versions of one resource are compared as numbers (KEP-5504).
type overlay struct {
	mu sync.Mutex
	// tick counts what is begun and what is noted. An answer to what was begun after
	// something was noted is newer than that, whatever its version: versions move backwards
	// when a server is restored from a backup.
	tick    uint64
	entries map[overlayKey]overlayEntry
	// open are the entries without a version, for which one is looked for.
	open map[overlayKey]struct{}
	// scopes are collections that were deleted: which objects that met is not known.
	scopes map[scope]scopeDoubt
	// sweepAt is the number of entries at which those that are of no use any more are
	// looked for.
	sweepAt int
}

// overlayKey names an object in all of its versions and representations.
type overlayKey struct {
	cluster, group, plural, namespace, name string
}

func newOverlay() *overlay {
	return &overlay{
		entries: make(map[overlayKey]overlayEntry), open: make(map[overlayKey]struct{}),
		scopes: make(map[scope]scopeDoubt), sweepAt: firstSweep,
	}
}

// firstSweep is the least number of entries that is worth a look.
const firstSweep = 64

func keyOf(ref kube.Ref) overlayKey {
	namespace := ref.Namespace
	if ref.Resource.ClusterScoped {
		namespace = ""
	}
	return overlayKey{ref.Cluster, ref.Resource.Group, ref.Resource.Plural, namespace, ref.Name}
}

// begin is the time of a request that is about to be made.
func (o *overlay) begin() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick++
	return o.tick
}

// get is the entry of an object.
func (o *overlay) get(k overlayKey) (overlayEntry, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, ok := o.entries[k]
	return e, ok
}

// put notes what the answer to a request says that was begun at a time.
func (o *overlay) put(k overlayKey, began uint64, e overlayEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, had := o.entries[k]; had {
		e = e.after(old, began > old.tick)
	}
	o.set(k, e)
}

// settle puts the result of a live read in place of what was doubted, unless something was
// noted since the read was begun.
func (o *overlay) settle(k overlayKey, began uint64, e overlayEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, had := o.entries[k]; had && began > old.tick {
		o.set(k, e.after(old, true))
	}
}

func (o *overlay) set(k overlayKey, e overlayEntry) {
	o.tick++
	e.tick, e.at = o.tick, time.Now()
	o.entries[k] = e
	if e.version == "" {
		o.open[k] = struct{}{}
	} else {
		delete(o.open, k)
	}
}

// drop takes an entry away, unless another has taken its place.
func (o *overlay) drop(k overlayKey, e overlayEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, ok := o.entries[k]; ok && now.tick == e.tick {
		delete(o.entries, k)
		delete(o.open, k)
	}
}

// in are the keys of a collection.
func (o *overlay) in(s scope) []overlayKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []overlayKey
	for k := range o.entries {
		if s.has(k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// bound notes that all that had happened to a resource when a request was begun precedes
// this version. So what was in doubt then is settled for a stream that reaches it.
func (o *overlay) bound(r scope, began uint64, version string) {
	if !comparableVersion(version) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	r.namespace = ""
	for k := range o.open {
		if e := o.entries[k]; r.has(k) && e.tick < began {
			e.version = version
			o.entries[k] = e
			delete(o.open, k)
		}
	}
	for s, d := range o.scopes {
		if r.overlaps(s) && d.version == "" && d.tick < began {
			d.version = version
			o.scopes[s] = d
		}
	}
}

// unsettled tells whether anything waits for a version.
func (o *overlay) unsettled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.open) > 0 {
		return true
	}
	for _, d := range o.scopes {
		if d.version == "" {
			return true
		}
	}
	return false
}

// due is a copy of all that there is when it is time to look for what is of no use any
// more, and otherwise nothing.
func (o *overlay) due() (map[overlayKey]overlayEntry, map[scope]scopeDoubt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.entries)+len(o.scopes) < o.sweepAt {
		return nil, nil
	}
	return maps.Clone(o.entries), maps.Clone(o.scopes)
}

// swept says when to look again.
func (o *overlay) swept() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sweepAt = max(firstSweep, 2*(len(o.entries)+len(o.scopes)))
}
