package codec

// Compressor decides how the contents of a database are written: as they are until enough of them
// is known, then against a dictionary made of some, and against another one when that no longer
// fits. Its caller keeps the contents, provides samples, and writes old contents anew. It must
// not be used concurrently. The zero Compressor is ready.
//
// Example of 64 objects of 1 KB each, which change again and again:
//
//	the 64 objects   the first dictionary is made of them
//	4 rounds         256 changes each. The contents are encoded with ratios around 0.2, the best of which is 0.19.
//	                 No other dictionary is tried yet
//	5th round        has the ratio 0.25, more than 1.2 times the best. So a dictionary of one half of the samples
//	                 is tried on the other half. It saves less than a tenth, and is dropped
//	2 rounds         no other dictionary is tried
//	8th round        has the ratio 0.3. The dictionary that is tried saves a third, and is adopted
//
// When there are 512 objects, 8 times as many, another dictionary is tried whatever the ratio is.
type Compressor struct {
	// current is nil until there is a dictionary.
	current *Codec
	// adopted counts the dictionaries.
	adopted uint64
	// plainSize is the length of the contents that came before the first dictionary, in bytes,
	// and plainCount their number.
	plainSize, plainCount int

	// contentSize and encodedSize are the lengths of the contents in the current round, before
	// and after, in bytes; count is their number.
	contentSize, encodedSize, count int
	// bestRatio is the best ratio of encodedSize to contentSize that the current dictionary has
	// had in a round, or 0.
	bestRatio float64
	// roundsToWait is how many rounds must pass before another dictionary is tried.
	roundsToWait int
	// failures counts the dictionaries in a row that were tried and not adopted.
	failures int
	// retrainAt is the number of contents at which another dictionary is tried whatever the ratio
	// is: the first contents are often those of one namespace.
	retrainAt int
}

const (
	// MinSize is the length of the contents that are worth compressing, in bytes.
	MinSize = 256
	// minSamples is how many contents make a dictionary if they are small.
	minSamples = 64
	// roundLength is how many contents are judged together.
	roundLength = 256
	// worseBy is the factor by which the ratio may rise before another dictionary is tried.
	worseBy = 1.2
	// betterBy is the factor by which another dictionary must save.
	betterBy = 0.9
	// growth is the factor by which the contents must grow before another dictionary is tried.
	growth = 8
)

// Current returns the codec in use, or nil if there is no dictionary yet.
func (c *Compressor) Current() *Codec { return c.current }

// Adopted returns how many dictionaries there were so far.
func (c *Compressor) Adopted() uint64 { return c.adopted }

// Append appends content to dst, and returns the codec that it is written with: nil if it is
// written as it is.
func (c *Compressor) Append(dst, content []byte) ([]byte, *Codec) {
	if c.current == nil || len(content) < MinSize || len(content) > MaxContentSize {
		return append(dst, content...), nil
	}
	before := len(dst)
	encoded := c.current.Encode(dst, content)
	size, used := len(encoded)-before, c.current
	if size >= len(content)-len(content)/8 { // not worth decoding
		encoded, size, used = append(encoded[:before], content...), len(content), nil
	}
	c.contentSize, c.encodedSize, c.count = c.contentSize+len(content), c.encodedSize+size, c.count+1
	return encoded, used
}

// RecordContent records that a new content of at least MinSize is kept.
func (c *Compressor) RecordContent(size int) {
	if c.current == nil {
		c.plainSize += size
		c.plainCount++
	}
}

// Train makes a dictionary of samples if one is due, and reports whether it is the current one
// now. total is the number of all contents; isResting is true if no more are expected soon.
func (c *Compressor) Train(total int, isResting bool, samples func() [][]byte) (isAdopted bool) {
	if c.current == nil {
		if c.hasEnough(isResting) {
			c.adopt(New(samples()), total)
			return true
		}
		return false
	}
	if !c.advanceRound(total) {
		return false
	}
	// A dictionary always fits the samples that it was made of. So it is tested on the other half.
	var half, rest [][]byte
	for i, sample := range samples() {
		if i%2 == 0 {
			half = append(half, sample)
		} else {
			rest = append(rest, sample)
		}
	}
	another := New(half)
	if float64(another.Cost(rest)) < betterBy*float64(c.current.Cost(rest)) {
		c.adopt(another, total)
		return true
	}
	c.failures++
	c.roundsToWait = 1 << min(c.failures, 10)
	return false
}

// hasEnough reports whether a first dictionary can be made.
func (c *Compressor) hasEnough(isResting bool) bool {
	switch {
	case c.plainSize >= 512<<10:
		return true
	case c.plainCount >= minSamples:
		return c.plainSize >= MaxDictionarySize
	default:
		return isResting && c.plainSize >= 2*MaxDictionarySize
	}
}

// advanceRound ends the round if the round is long enough, and reports whether another dictionary should be tried. If
// there are retrainAt contents, another dictionary should be tried, and the round goes on.
func (c *Compressor) advanceRound(total int) (shouldRetrain bool) {
	if total >= c.retrainAt {
		c.retrainAt = growth * total
		return true
	}
	if c.count < roundLength {
		return false
	}
	ratio := float64(c.encodedSize) / float64(c.contentSize)
	c.contentSize, c.encodedSize, c.count = 0, 0, 0
	if c.bestRatio == 0 || ratio < c.bestRatio {
		c.bestRatio = ratio
	}
	if c.roundsToWait > 0 {
		c.roundsToWait--
		return false
	}
	return ratio > worseBy*c.bestRatio
}

// adopt makes a codec the current one.
func (c *Compressor) adopt(next *Codec, total int) {
	c.current = next
	c.adopted++
	c.contentSize, c.encodedSize, c.count, c.bestRatio = 0, 0, 0, 0
	c.failures = 0
	// The cost of writing everything anew is spread over as many new contents.
	c.roundsToWait = max(4, total/roundLength)
	c.retrainAt = max(c.retrainAt, growth*total)
}
