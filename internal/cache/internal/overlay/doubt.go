package overlay

import (
	"time"

	"github.com/yare-go/yare/internal/ident"
)

// CollectionDoubt records that something has happened to unknown objects of a collection: the collection was
// deleted, or an object was perhaps created under a name that only the server knows.
type CollectionDoubt struct {
	// Version is a resource version after all effects. It is empty until one is known.
	Version string
	// Incomparable is true if the server gives versions that cannot be compared. Then Version
	// stays empty.
	Incomparable bool

	tick     Tick
	recorded time.Time
	// bounded is when Version was asked for, at first when the doubt was recorded.
	bounded time.Time
}

// IsObservedBy reports whether a store has observed all effects. Only the Version and OpenSince
// of the observation count. A store of a kind without bookmarks and without changes never reaches the Version, but its
// watch has shown everything after a while.
func (d CollectionDoubt) IsObservedBy(o Observation) bool {
	return d.Version != "" && ident.HasReached(o.Version, d.Version) || hasShownAllSince(o, d.recorded)
}

// NeedsVersion reports whether a version must be found for a store that has not observed d: d has
// none, or the store should have reached it long since, so that versions may have moved
// backwards.
func (d CollectionDoubt) NeedsVersion() bool {
	return !d.Incomparable && (d.Version == "" || time.Since(d.bounded) > MaxAge)
}

// withVersion returns d with a version after all effects, which was asked for now.
func (d CollectionDoubt) withVersion(version string) CollectionDoubt {
	if ident.IsComparable(version) {
		d.Version = version
	} else {
		d.Incomparable = true
	}
	d.bounded = time.Now()
	return d
}

// collectionDoubts are the doubts of an [Overlay], at most one for each collection.
type collectionDoubts map[Collection]CollectionDoubt

// add adds a doubt that is recorded now, at a tick.
func (all collectionDoubts) add(c Collection, tick Tick) {
	now := time.Now()
	all[c] = CollectionDoubt{tick: tick, recorded: now, bounded: now}
}

// has reports whether no other doubt has taken the place of d.
func (all collectionDoubts) has(c Collection, d CollectionDoubt) bool {
	current, ok := all[c]
	return ok && current.tick == d.tick
}

// overlapping returns the doubts about collections that have objects in common with c.
func (all collectionDoubts) overlapping(c Collection) map[Collection]CollectionDoubt {
	var found map[Collection]CollectionDoubt
	for other, d := range all {
		if c.Overlaps(other) {
			if found == nil {
				found = make(map[Collection]CollectionDoubt)
			}
			found[other] = d
		}
	}
	return found
}

// recordVersion records a version after all effects of the doubts about c that were recorded before a tick.
func (all collectionDoubts) recordVersion(c Collection, before Tick, version string) {
	for other, d := range all {
		if c.Overlaps(other) && d.Version == "" && d.tick < before {
			d.Version = version
			all[other] = d
		}
	}
}

// hasUnbounded reports whether a doubt has no version.
func (all collectionDoubts) hasUnbounded() bool {
	for _, d := range all {
		if d.Version == "" {
			return true
		}
	}
	return false
}
