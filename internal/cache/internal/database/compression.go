package database

import "github.com/yare-go/yare/internal/cache/internal/codec"

// compression compresses the contents of the packed objects of one database.
type compression struct {
	compressor codec.Compressor
	// isPlain is true if nothing is compressed.
	isPlain bool
	// recent holds the last packed objects that were put, in a ring. The oldest packed object is at next.
	recent [samplesEach]*PackedObject
	next   int
}

// samplesEach is how many packed objects are looked at for a dictionary: so many of the last ones, and
// so many of all.
const samplesEach = 32

// recordRecent records a packed object that was just put, as a sample for the next dictionary.
func (c *compression) recordRecent(e *PackedObject) {
	if c.isPlain || e.size < codec.MinSize {
		return
	}
	c.recent[c.next] = e
	c.next = (c.next + 1) % len(c.recent)
	c.compressor.RecordContent(int(e.size))
}

// train makes a dictionary from packed objects if one is due. It reports whether there is a new one.
func (c *compression) train(t *objectTable, isResting bool) (isNew bool) {
	isNew = c.compressor.Train(t.table.Len(), isResting, func() [][]byte { return c.samples(t) })
	if isNew {
		clear(c.recent[:]) // they may be written as they were sent
	}
	return isNew
}

// samples returns contents that stand for what the database holds and for what comes next: some of all
// objects, evenly, and the last ones.
func (c *compression) samples(t *objectTable) [][]byte {
	var samples [][]byte
	add := func(e *PackedObject) {
		if e == nil || e.size < codec.MinSize {
			return
		}
		if content, err := e.appendContent(nil); err == nil {
			samples = append(samples, content)
		}
	}
	for i := range samplesEach {
		if n := len(t.slots); n >= 2*samplesEach {
			add(t.slots[i*n/samplesEach])
		}
	}
	// The ring, from its oldest packed object on.
	for i := range c.recent {
		add(c.recent[(c.next+i)%len(c.recent)])
	}
	return samples
}

// append appends content to dst, and returns the codec that it is written with, or nil.
func (c *compression) append(dst, content []byte) ([]byte, *codec.Codec) {
	if c.isPlain {
		return append(dst, content...), nil
	}
	return c.compressor.Append(dst, content)
}
