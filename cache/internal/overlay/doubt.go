package overlay

import (
	"time"

	"github.com/yare-go/yare/internal/ident"
)

// CollectionDoubt records that something has happened to objects of a collection, and that it is
// not known to which objects: the collection was deleted, or an object was perhaps created under a
// name that only the server knows.
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
// of the observation count.
func (d CollectionDoubt) IsObservedBy(o Observation) bool {
	if d.Version == "" {
		return hasShownAllSince(o, d.recorded)
	}
	return ident.HasReached(o.Version, d.Version)
}

// NeedsVersion reports whether a version must be found for a store that has not observed d: d has
// none, or the store should have reached it long since, so that versions may have moved
// backwards.
func (d CollectionDoubt) NeedsVersion() bool {
	return !d.Incomparable && (d.Version == "" || time.Since(d.bounded) > MaxAge)
}

// DoubtCollection records that it is not known what has happened in a collection.
func (o *Overlay) DoubtCollection(c Collection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tick++
	now := time.Now()
	o.doubts[c] = CollectionDoubt{tick: o.tick, recorded: now, bounded: now}
}

// Doubts returns the doubts that c, or an object in it, may be part of.
func (o *Overlay) Doubts(c Collection) map[Collection]CollectionDoubt {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all map[Collection]CollectionDoubt
	for other, d := range o.doubts {
		if c.Overlaps(other) {
			if all == nil {
				all = make(map[Collection]CollectionDoubt)
			}
			all[other] = d
		}
	}
	return all
}

// BoundDoubt records the version after all effects of d, unless another doubt has taken its
// place. It returns the updated d.
func (o *Overlay) BoundDoubt(c Collection, d CollectionDoubt, version string) CollectionDoubt {
	if ident.IsComparable(version) {
		d.Version = version
	} else {
		d.Incomparable = true
	}
	d.bounded = time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, had := o.doubts[c]; had && now.tick == d.tick {
		o.doubts[c] = d
	}
	return d
}

// DropDoubt removes d, unless another doubt has taken its place.
func (o *Overlay) DropDoubt(c Collection, d CollectionDoubt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now, had := o.doubts[c]; had && now.tick == d.tick {
		delete(o.doubts, c)
	}
}
