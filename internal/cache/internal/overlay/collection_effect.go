package overlay

import (
	"time"

	"github.com/yare-go/yare/internal/ident"
)

// CollectionEffect records that a request has changed, or may have changed, unknown objects of a collection: the
// collection was deleted, or an object was perhaps created under a name that only the server knows.
type CollectionEffect struct {
	// Version is a resource version after the effect. It is empty until such a version is known.
	Version string
	// IsIncomparable is true if the server gives versions that cannot be compared. Then Version
	// stays empty.
	IsIncomparable bool

	tick     Tick
	recorded time.Time
	// versionAskedAt is when Version was asked for. Before that it is the time of recorded.
	versionAskedAt time.Time
}

// IsObservedBy reports whether a store has observed the effect. Only the Version and OpenSince
// of the observation count. A store of a kind without bookmarks and without changes never reaches the Version, but its
// watch has shown everything after a while.
func (e CollectionEffect) IsObservedBy(o Observation) bool {
	return e.Version != "" && ident.HasReached(o.Version, e.Version) || hasShownAllSince(o, e.recorded)
}

// NeedsVersion reports whether a version must be found for a store that has not observed e. This is so if e has no
// version. It is also so if the store should have reached the version long since: versions may have moved backwards.
func (e CollectionEffect) NeedsVersion() bool {
	return !e.IsIncomparable && (e.Version == "" || time.Since(e.versionAskedAt) > MaxAge)
}

// withVersion returns e with a version after the effect, which was asked for now.
func (e CollectionEffect) withVersion(version string) CollectionEffect {
	if ident.IsComparable(version) {
		e.Version = version
	} else {
		e.IsIncomparable = true
	}
	e.versionAskedAt = time.Now()
	return e
}

// collectionEffects are the effects that an [Overlay] remembers, at most one for each collection.
type collectionEffects map[Collection]CollectionEffect

// add adds an effect that is recorded now, at a tick.
func (all collectionEffects) add(c Collection, tick Tick) {
	now := time.Now()
	all[c] = CollectionEffect{tick: tick, recorded: now, versionAskedAt: now}
}

// has reports whether no other effect has taken the place of e.
func (all collectionEffects) has(c Collection, e CollectionEffect) bool {
	current, ok := all[c]
	return ok && current.tick == e.tick
}

// overlapping returns the effects on collections that have objects in common with c.
func (all collectionEffects) overlapping(c Collection) map[Collection]CollectionEffect {
	var found map[Collection]CollectionEffect
	for other, e := range all {
		if c.Overlaps(other) {
			if found == nil {
				found = make(map[Collection]CollectionEffect)
			}
			found[other] = e
		}
	}
	return found
}

// recordVersion records a version after the effects on c that were recorded before a tick.
func (all collectionEffects) recordVersion(c Collection, before Tick, version string) {
	for other, e := range all {
		if c.Overlaps(other) && e.Version == "" && e.tick < before {
			e.Version = version
			all[other] = e
		}
	}
}

// hasVersionless reports whether an effect has no version.
func (all collectionEffects) hasVersionless() bool {
	for _, e := range all {
		if e.Version == "" {
			return true
		}
	}
	return false
}
