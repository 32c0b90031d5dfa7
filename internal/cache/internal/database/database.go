// Package database keeps objects in memory. It keeps the JSON of each object, compressed
// against a dictionary made of other objects, beside the few decoded fields that selections and
// comparisons need. It finds objects by key, namespace, owner, label, and by the indexes of an
// author.
//
// A [Database] is read by anybody and changed by its [Writer] alone. Neither makes a request, and
// neither knows where the objects come from.
package database

import (
	"slices"
	"sync"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Database holds objects of one kind. All methods can be used concurrently; reads wait neither for
// compression nor for each other. Only its [Writer] changes it.
type Database struct {
	// report receives the errors of index functions that Index calls.
	report func(error)

	// mu guards the fields below. The Writer reads them without mu, because nobody else changes them. Only
	// indexes are added by others too.
	mu      sync.RWMutex
	objects *objectTable
	// version is the resource version that the database has reached, or empty.
	version string
	// isComplete is true once the database has held every object of its selection.
	isComplete bool
	// dictionaries counts the dictionaries that were made so far.
	dictionaries uint64
}

// Options are the properties of a Database.
type Options struct {
	// OneNamespace is true if all objects are in one namespace, or in none.
	OneNamespace bool
	// Plain is true if the contents are not compressed. Contents that are compressed together
	// disclose something of one another by their size.
	Plain bool
	// Report receives the errors of index functions that [Database.Index] calls. No lock is held.
	Report func(error)
	// ReportWrite receives the errors of index functions and of decompression that occur in the
	// methods of the Writer. It must not use the Writer.
	ReportWrite func(error)
}

// Stats are the numbers of a Database.
type Stats struct {
	// Objects is the number of objects.
	Objects int
	// Bytes is the size of the objects' contents in memory, and JSON is the size before they were
	// compressed. Both are in bytes.
	Bytes, JSON int64
	// Dictionary is the size of the dictionaries in use, in bytes.
	Dictionary int64
	// Dictionaries counts the dictionaries that were made so far.
	Dictionaries uint64
}

// New returns an empty Database and its Writer.
func New(o Options) (*Database, *Writer) {
	d := &Database{report: o.Report, objects: newObjectTable(o.OneNamespace)}
	return d, &Writer{database: d, objects: d.objects, report: o.ReportWrite, compression: compression{isPlain: o.Plain}}
}

// Get returns the packed object of that key, or nil if the database has no such object. The
// Cluster of k does not count.
func (d *Database) Get(k kube.Key) *PackedObject {
	p, _ := d.State(k)
	return p
}

// State returns the packed object of k, or nil. version is the resource version that the database has
// reached at the same moment.
func (d *Database) State(k kube.Key) (p *PackedObject, version string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.objects.find(k), d.version
}

// Len returns the number of objects.
func (d *Database) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.objects.table.Len()
}

// IsComplete reports whether the database has held every object of its selection at some time.
func (d *Database) IsComplete() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.isComplete
}

// Version returns the resource version that the database has reached: all changes up to it are in
// the database. It is empty before [Writer.Complete].
func (d *Database) Version() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.version
}

// Stats returns the Stats of the database.
func (d *Database) Stats() Stats {
	d.mu.RLock()
	defer d.mu.RUnlock()
	stats := d.objects.stats()
	stats.Dictionaries = d.dictionaries
	return stats
}

// Index adds x to the database. The database then keeps every object under the values that the function of x
// returns for the object. The Writer calls the function for every change, so the function must not block. A
// panic in it is reported, and then the object counts as if it had every value: see [Filter]. The index can
// be used once Index has returned. Adding an index twice has no effect.
func (d *Database) Index(x wire.Index) {
	d.mu.Lock()
	if existing := d.objects.contentIndex(x); existing != nil {
		d.mu.Unlock()
		<-existing.ready
		return
	}
	// From now on the writer indexes what changes.
	added := newContentIndex(x)
	d.objects.contentIndexes = append(d.objects.contentIndexes, added)
	packed := slices.Clone(d.objects.slots)
	d.mu.Unlock()
	for slot, p := range packed {
		if p == nil {
			continue
		}
		object, err := p.AppendJSON(nil)
		var values []string
		if err == nil {
			values, err = added.valuesOf(p.Key(), object)
		}
		if err != nil {
			d.report(err)
		}
		d.mu.Lock()
		if current := d.objects.slots[slot]; current != nil && current.name == p.name && current.version.Equal(p.version) {
			added.set(uint32(slot), values, err != nil)
		}
		d.mu.Unlock()
	}
	close(added.ready)
}

// HasIndex reports whether x is kept and can be used, and whether its function has panicked: then
// the objects under a value include some that may not have it.
func (d *Database) HasIndex(x wire.Index) (isKept, hasPanicked bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	existing := d.objects.contentIndex(x)
	if existing == nil || !existing.isReady() {
		return false, false
	}
	return true, existing.hasPanicked
}

// IndexLabel makes it cheap to select by the equality of the label key. It changes no result.
// Adding a key twice has no effect.
func (d *Database) IndexLabel(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects.indexLabel(key)
}

// Select returns the objects that match now. It decompresses nothing. It panics if f names an index
// that the database does not keep.
func (d *Database) Select(f Filter) Selection {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return Selection{f, d.objects.candidates(f)}
}
