package cache

import (
	"time"

	"github.com/yare-go/yare/kube"
)

// scope is a collection; without a namespace it is all of them.
type scope struct {
	cluster, group, plural, namespace string
}

// scopeDoubt is that something has happened to objects of a collection, and to which ones
// is not known: it was deleted, or an object was perhaps made under a name that only the
// server knows.
type scopeDoubt struct {
	tick uint64
	at   time.Time
	// version, once it is known, is one that all effects precede.
	version string
}

// scopeOf is the collection that a request is about, or that its object belongs to.
func scopeOf(r *kube.Request) scope {
	k := keyOf(r.Ref())
	return scope{k.cluster, k.group, k.plural, k.namespace}
}

// has tells whether an object is part of it.
func (s scope) has(k overlayKey) bool {
	return k.cluster == s.cluster && k.group == s.group && k.plural == s.plural &&
		(s.namespace == "" || k.namespace == s.namespace)
}

// overlaps tells whether an object can be part of both.
func (s scope) overlaps(o scope) bool {
	return o.cluster == s.cluster && o.group == s.group && o.plural == s.plural &&
		(o.namespace == "" || s.namespace == "" || o.namespace == s.namespace)
}

// doubtScope notes that it is not known what has happened in a collection.
func (o *overlay) doubtScope(s scope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick++
	o.scopes[s] = scopeDoubt{tick: o.tick, at: time.Now()}
}

// doubted are the doubts that s, or an object in it, may be part of.
func (o *overlay) doubted(s scope) map[scope]scopeDoubt {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all map[scope]scopeDoubt
	for other, d := range o.scopes {
		if s.overlaps(other) {
			if all == nil {
				all = make(map[scope]scopeDoubt)
			}
			all[other] = d
		}
	}
	return all
}

// boundScope notes the version that settles a doubt, unless there is another one now.
func (o *overlay) boundScope(s scope, d scopeDoubt, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, had := o.scopes[s]; had && now.tick == d.tick {
		now.version, now.at = version, time.Now()
		o.scopes[s] = now
	}
}

// dropScope ends a doubt, unless there is another one now.
func (o *overlay) dropScope(s scope, d scopeDoubt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, had := o.scopes[s]; had && now.tick == d.tick {
		delete(o.scopes, s)
	}
}
