package database

import (
	"slices"

	"github.com/yare-go/yare/internal/cache/internal/codec"
)

// compression compresses the contents of the packed objects of one database.
type compression struct {
	compressor codec.Compressor
	// isPlain is true if nothing is compressed.
	isPlain bool
	// recent holds the last packed objects that were put, the oldest one first: samplesEach at most, and with more than
	// one of them maxRecentSize at most. Objects among them may be outdated or gone.
	recent []*PackedObject
	// recentSize is the size of the data of recent, in bytes.
	recentSize int
}

const (
	// samplesEach is how many packed objects are looked at for a dictionary: so many of the last ones, and
	// so many of all.
	samplesEach = 32
	// maxRecentSize bounds the data of the last packed objects, in bytes.
	maxRecentSize = samplesEach * codec.MaxDictionarySize
	// maxSamplesSize bounds the contents that a dictionary is made of, in bytes, with more than one of them.
	maxSamplesSize = 4 * maxRecentSize
)

// recordRecent records a packed object that was just put, as a sample for the next dictionary.
func (c *compression) recordRecent(e *PackedObject) {
	if c.isPlain || e.size < codec.MinSize {
		return
	}
	c.recent, c.recentSize = append(c.recent, e), c.recentSize+len(e.data)
	for len(c.recent) > samplesEach || len(c.recent) > 1 && c.recentSize > maxRecentSize {
		c.recentSize -= len(c.recent[0].data)
		c.recent = slices.Delete(c.recent, 0, 1) // it is freed
	}
	c.compressor.RecordContent(int(e.size))
}

// train makes a dictionary from packed objects if one is due. It reports whether there is a new one.
func (c *compression) train(t *objectTable, isResting bool) (isNew bool) {
	isNew = c.compressor.Train(t.table.Len(), isResting, func() [][]byte { return c.samples(t) })
	if isNew {
		c.recent, c.recentSize = nil, 0 // they may be written as they were sent
	}
	return isNew
}

// samples returns contents that stand for what the database holds and for what comes next: some of all
// objects, evenly, and the last ones.
func (c *compression) samples(t *objectTable) [][]byte {
	var samples [][]byte
	size := 0
	add := func(e *PackedObject) {
		if e == nil || e.size < codec.MinSize || size > 0 && size+int(e.size) > maxSamplesSize {
			return
		}
		if content, err := e.appendContent(nil); err == nil {
			samples = append(samples, content)
			size += len(content)
		}
	}
	for i := range samplesEach {
		if n := len(t.slots); n >= 2*samplesEach {
			add(t.slots[i*n/samplesEach])
		}
	}
	for _, e := range c.recent {
		add(e)
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
