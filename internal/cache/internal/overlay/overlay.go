package overlay

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
)

// Overlay holds the entries of a program. It may be used concurrently.
type Overlay struct {
	mu sync.Mutex
	// tick counts what is begun and what is recorded.
	tick    Tick
	entries map[Key]Entry
	// versionless holds the keys of the entries without a version.
	versionless map[Key]struct{}
	effects     collectionEffects
	// restored holds a tick for each cluster that was restored from a backup. The restoration was found at
	// the tick.
	restored map[string]Tick
	// sweepSize is the number of entries at which the next sweep is due.
	sweepSize int
	swept     time.Time
}

// Tick is a point in the order of all that is begun and recorded. An answer to a request is newer than
// everything recorded before the request began, whatever the versions. Versions move backwards when a server
// is restored from a backup.
type Tick uint64

// minSweepSize is the least number of entries that is worth a sweep.
const minSweepSize = 64

// New returns an empty Overlay.
func New() *Overlay {
	return &Overlay{
		entries: make(map[Key]Entry), versionless: make(map[Key]struct{}), effects: make(collectionEffects),
		restored:  make(map[string]Tick),
		sweepSize: minSweepSize,
	}
}

// Begin returns the tick of a request that is about to be made.
func (o *Overlay) Begin() Tick {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick++
	return o.tick
}

// Get returns the entry of an object.
func (o *Overlay) Get(k Key) (e Entry, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, ok = o.entries[k]
	return e, ok
}

// Len returns the number of entries.
func (o *Overlay) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries)
}

// Record records e, the meaning of the answer to a request that began at a tick. It reports whether it did
// so. If a restoration was found after the request began, the restoration may have undone what the answer
// shows. Then Record records an unknown state.
func (o *Overlay) Record(k Key, began Tick, e Entry) (isRecorded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	isRecorded = began >= o.restored[k.Cluster]
	if !isRecorded {
		e = Entry{Kind: UnknownState}
	}
	e.began = began
	switch old, had := o.entries[k]; {
	case had && began > old.tick:
		e = e.merge(old)
	case had:
		e = e.mergeOverlapping(old)
	}
	o.setLocked(k, e)
	return isRecorded
}

// RecordPossiblyGone records that the object of uid may be gone. A tombstone of the object stays.
func (o *Overlay) RecordPossiblyGone(k Key, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, had := o.entries[k]
	switch {
	case !had:
		o.setLocked(k, Entry{Kind: UnknownState})
	case old.Kind != Tombstone || !old.hasHolder(uid):
		o.setLocked(k, Entry{Kind: UnknownState}.merge(old))
	}
}

// ReplaceWithRead puts the result of a live read that began at a tick in place of the entry, unless
// something was recorded since. ReplaceWithRead reports whether it did so.
func (o *Overlay) ReplaceWithRead(k Key, began Tick, e Entry) (isReplaced bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, had := o.entries[k]
	if !had || began <= old.tick || began <= o.restored[k.Cluster] {
		return false
	}
	e.began = began
	o.setLocked(k, e.merge(old))
	return true
}

func (o *Overlay) setLocked(k Key, e Entry) {
	o.tick++
	e.tick, e.recorded, e.isMarkedOld = o.tick, time.Now(), false
	o.entries[k] = e
	if e.Version == "" {
		o.versionless[k] = struct{}{}
	} else {
		delete(o.versionless, k)
	}
}

// Drop removes e, unless another entry has taken its place.
func (o *Overlay) Drop(k Key, e Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, ok := o.entries[k]; ok && now.tick == e.tick {
		delete(o.entries, k)
		delete(o.versionless, k)
	}
}

// Keys returns the keys of the entries in a collection.
func (o *Overlay) Keys(c Collection) []Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []Key
	for k := range o.entries {
		if c.Contains(k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Entries returns the entries in a collection.
func (o *Overlay) Entries(c Collection) map[Key]Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all map[Key]Entry
	for k, e := range o.entries {
		if c.Contains(k) {
			if all == nil {
				all = make(map[Key]Entry)
			}
			all[k] = e
		}
	}
	return all
}

// RecordVersion records that version is newer than all changes of the resource of c from before a request
// began. So a store that reaches version has observed what had no version until then.
func (o *Overlay) RecordVersion(c Collection, began Tick, version string) {
	if !ident.IsComparable(version) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if began < o.restored[c.Cluster] {
		return
	}
	c.Namespace = ""
	for k := range o.versionless {
		if e := o.entries[k]; c.Contains(k) && e.tick < began {
			e.Version = version
			o.entries[k] = e
			delete(o.versionless, k)
		}
	}
	o.effects.recordVersion(c, began, version)
}

// InvalidateGroups puts an unknown state in place of each entry of some groups of a cluster: the server was restored
// from a backup. The versions of the entries do not count, because the server may have assigned them twice. The values
// of the entries stay, as with [Overlay.InvalidateUntil].
func (o *Overlay) InvalidateGroups(cluster string, isAffected func(group string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick++
	o.restored[cluster] = o.tick
	for k, e := range o.entries {
		if k.Cluster == cluster && isAffected(k.Group) {
			o.setLocked(k, Entry{Kind: UnknownState, Former: e.Values()})
		}
	}
}

// InvalidateUntil puts an unknown state at version in place of each entry of a collection that was recorded before a
// tick. A store that reaches version is right. The values of the entries stay: a stream that lists later may have to
// publish the deletion of an object.
func (o *Overlay) InvalidateUntil(c Collection, before Tick, version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, e := range o.entries {
		if c.Contains(k) && e.IsRecordedBefore(before) {
			o.setLocked(k, Entry{Kind: UnknownState, Version: version, Former: e.Values()})
		}
	}
}

// MarkOld makes the entries of a collection count as older than [MaxAge]. It is called at the end of a watch:
// the server may be restored from a backup before the next watch opens. The entries keep their content,
// because a stream may have to publish that an object was deleted.
func (o *Overlay) MarkOld(c Collection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, e := range o.entries {
		if c.Contains(k) {
			e.isMarkedOld = true
			o.entries[k] = e
		}
	}
}

// HasVersionless reports whether an entry or an effect has no version. [Overlay.RecordVersion] gives it one.
func (o *Overlay) HasVersionless() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.versionless) > 0 || o.effects.hasVersionless()
}

// RecordCollectionEffect records that a request has changed, or may have changed, unknown objects of a collection.
func (o *Overlay) RecordCollectionEffect(c Collection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick++
	o.effects.add(c, o.tick)
}

// CollectionEffects returns the effects on collections that have objects in common with c.
func (o *Overlay) CollectionEffects(c Collection) map[Collection]CollectionEffect {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.effects.overlapping(c)
}

// SetEffectVersion records a version after the effect e, unless another effect has taken its place. It returns e with
// the version.
func (o *Overlay) SetEffectVersion(c Collection, e CollectionEffect, version string) CollectionEffect {
	updated := e.withVersion(version)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.effects.has(c, e) {
		o.effects[c] = updated
	}
	return updated
}

// DropEffect removes e, unless another effect has taken its place.
func (o *Overlay) DropEffect(c Collection, e CollectionEffect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.effects.has(c, e) {
		delete(o.effects, c)
	}
}

// Sweep calls isNeeded for every entry and isEffectNeeded for every effect, and removes what is not needed.
// Sweep does nothing if the last sweep was a short time ago. A value that is too old to be read keeps its
// content: if the object is not in a later list, the deletion is published with this content.
func (o *Overlay) Sweep(isNeeded func(Key, Entry) bool, isEffectNeeded func(Collection, CollectionEffect) bool) {
	o.mu.Lock()
	size := len(o.entries) + len(o.effects)
	if size < o.sweepSize && (size == 0 || time.Since(o.swept) < MaxAge) {
		o.mu.Unlock()
		return
	}
	o.swept = time.Now()
	o.sweepSize = max(minSweepSize, 2*size)
	entries, effects := maps.Clone(o.entries), maps.Clone(o.effects)
	o.mu.Unlock()
	for k, e := range entries {
		if !isNeeded(k, e) {
			o.Drop(k, e)
		}
	}
	for c, e := range effects {
		if !isEffectNeeded(c, e) {
			o.DropEffect(c, e)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sweepSize = max(minSweepSize, 2*(len(o.entries)+len(o.effects)))
}
