package database

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/cache/internal/codec"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Item is one version of an object, as a server sent it.
type Item struct {
	key     kube.Key
	version ident.Version
	json    []byte
	// metadata are the members of the metadata in json, perhaps without managedFields. It is empty if they are unknown.
	metadata []jsonscan.Member
}

// NewItem returns the Item of a version of an object. The Cluster of the key does not count.
func NewItem(k kube.Key, uid types.UID, resourceVersion string, json []byte) Item {
	return Item{key: k, version: ident.NewVersion(uid, resourceVersion), json: json}
}

// WithMetadata returns i with the members of its metadata, so that the metadata are not searched for in the JSON
// again. The managedFields do not count.
func (i Item) WithMetadata(members []jsonscan.Member) Item {
	i.metadata = members
	return i
}

// Writer changes a Database. Each Database has one. It must not be used concurrently. It prepares
// everything outside of the lock of the database: under the lock, one packed object takes the place of another.
type Writer struct {
	database *Database
	// objects is the table of the packed objects of the database, which the Writer reads without the lock.
	objects *objectTable
	// report receives errors of index functions and of decompression.
	report func(error)

	builder     builder
	compression compression
	// buffer holds the data of the next packed object.
	buffer []byte
	// cursor is the next slot to check for content that is not written with the current codec. rewrites is
	// how many slots are to be checked.
	cursor, rewrites int
	// changesToWait is how many changes come before the next check: see Maintain.
	changesToWait int
}

// largeBuffer is how large a buffer may be to be kept, in bytes.
const largeBuffer = 64 << 10

// Has reports whether the database has the version of i, and can return its content.
func (w *Writer) Has(i Item) bool {
	e := w.objects.find(i.key)
	return e != nil && e.isDecodable() && e.version.Equal(i.version)
}

// Put packs i and puts it into the database. It returns the packed object that i replaces, or nil, and the packed i.
// err is about metadata that could not be decoded. Then the packed i is without metadata.
func (w *Writer) Put(i Item) (before, after *PackedObject, err error) {
	after, err = w.Build(i)
	return w.putPacked(after, i.json), after, err
}

// Build packs i, and puts it into no database. The error is about metadata that could not be read. Then the packed
// object is without metadata.
func (w *Writer) Build(i Item) (e *PackedObject, err error) {
	m := &w.builder.metadata
	err = m.readItem(i)
	// The item has the names, whatever the metadata contain.
	e = w.builder.build([]byte(i.key.Namespace), i.key.Name, i.version, len(i.json))
	if len(m.owners) > 0 {
		e.owners = w.objects.sharedOwners(m)
	}
	w.buffer = append(w.buffer[:0], m.labelValues...)
	w.buffer, e.codec = w.compression.append(w.buffer, i.json)
	e.data = string(w.buffer)
	if cap(w.buffer) > largeBuffer {
		w.buffer = nil
	}
	return e, err
}

// putPacked puts e into the database, and returns the packed object that e replaces, or nil. object is the JSON of e.
func (w *Writer) putPacked(e *PackedObject, object []byte) (before *PackedObject) {
	d := w.database
	type indexed struct {
		values    []string
		isUnknown bool
	}
	var results []indexed
	d.mu.Lock()
	for len(results) < len(d.objects.contentIndexes) { // others may add an index meanwhile
		x := d.objects.contentIndexes[len(results)]
		d.mu.Unlock()
		values, err := x.valuesOf(e.Key(), object)
		if err != nil {
			w.report(err)
		}
		results = append(results, indexed{values, err != nil})
		d.mu.Lock()
	}
	defer d.mu.Unlock()
	slot, before := d.objects.put(e)
	for i, x := range d.objects.contentIndexes {
		x.set(slot, results[i].values, results[i].isUnknown)
	}
	w.compression.recordRecent(e)
	return before
}

// Remove removes the object of that key from the database, and returns it. It returns nil if there is none.
func (w *Writer) Remove(k kube.Key) (before *PackedObject) {
	w.database.mu.Lock()
	defer w.database.mu.Unlock()
	return w.objects.remove(k)
}

// replace puts e in place of another packed object of the same version of an object.
func (w *Writer) replace(slot uint32, e *PackedObject) {
	w.database.mu.Lock()
	defer w.database.mu.Unlock()
	w.objects.replace(slot, e)
}

// MarkUndecodable marks the object of err: a version of it came that could not be decoded, so the
// content in the database is outdated. From then on err is the error of [PackedObject.AppendJSON].
func (w *Writer) MarkUndecodable(err *wire.DecodeError) {
	slot, exists := w.objects.slotOf(kube.Key{Namespace: err.Ref.Namespace, Name: err.Ref.Name})
	if !exists {
		return
	}
	e := *w.objects.slots[slot]
	e.decodeErr = err
	w.replace(slot, &e)
}

// Advance records that all changes up to version are in the database. A version that is empty, or
// older than the version of the database, has no effect.
func (w *Writer) Advance(version string) {
	d := w.database
	if version == "" || ident.IsNewer(d.version, version) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = version
}

// Complete records that the database holds every object, as it was at version. The version may be
// older than the database's version. Complete reports whether the database is complete for the first time.
func (w *Writer) Complete(version string) (isFirst bool) {
	d := w.database
	d.mu.Lock()
	defer d.mu.Unlock()
	isFirst = !d.isComplete
	d.version, d.isComplete = version, true
	return isFirst
}

// Maintain makes a dictionary if one is due, and writes some contents with it that were written
// otherwise. It is called after every change, and then does little. isResting is true if no other
// change is expected soon.
//
// In a complete database a dictionary is due when its objects have changed their looks. Then others will change soon,
// and be written with the new dictionary anyway. So Maintain first waits for half as many changes as there are objects.
// For example, a release changes each of 2,000 objects once, and the dictionary is made after 500 changes. Maintain
// waits until 1,500 have changed, and writes the other 500 anew, unless they change before their turn, too.
func (w *Writer) Maintain(isResting bool) {
	if w.compression.isPlain {
		return
	}
	if w.compression.train(w.objects, isResting) {
		w.database.mu.Lock()
		w.database.dictionaries = w.compression.compressor.Adopted()
		w.database.mu.Unlock()
		w.cursor, w.rewrites, w.changesToWait = 0, len(w.objects.slots), 0
		if w.database.isComplete {
			w.changesToWait = w.objects.table.Len() / 2
		}
	}
	if w.changesToWait > 0 && !isResting {
		w.changesToWait--
		return
	}
	steps := 2
	if isResting || w.objects.table.Len() <= 4*samplesEach {
		steps = 1024
	}
	for ; steps > 0 && w.rewrites > 0; w.rewrites-- {
		if w.rewrite(uint32(w.cursor)) {
			steps--
		}
		w.cursor++
	}
}

// rewrite writes the content in a slot with the current codec. It reports whether it was
// written with another one.
func (w *Writer) rewrite(slot uint32) (isRewritten bool) {
	e := w.objects.slots[slot]
	if e == nil || e.codec == w.compression.compressor.Current() || e.size < codec.MinSize {
		return false
	}
	content, err := e.appendContent(nil)
	if err != nil {
		w.report(err)
		return true
	}
	w.buffer = append(w.buffer[:0], e.data[:e.labelValuesLength]...)
	rewritten := *e
	w.buffer, rewritten.codec = w.compression.append(w.buffer, content)
	rewritten.data = string(w.buffer)
	w.replace(slot, &rewritten)
	return true
}
