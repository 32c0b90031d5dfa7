// Package codec compresses contents that resemble one another, each by itself. A [Codec] writes
// them against a dictionary made of some of them; a [Compressor] decides when there is enough to
// make one of, and when another one would be better.
package codec

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Codec compresses contents by zstd, against a dictionary of raw content. It may be used
// concurrently.
//
// Encoders and decoders are bound to a dictionary, and an encoder takes most of a megabyte.
// So there are only those in use, one of each as a rule; what lies idle for two rounds of
// the garbage collector is freed by it.
type Codec struct {
	dictionary []byte
	encoders   sync.Pool // of *zstd.Encoder
	decoders   sync.Pool // of *decoder
}

type decoder struct {
	*zstd.Decoder
	in []byte
}

const (
	// dictionaryID is needed for a frame to have a dictionary at all. The caller knows which one
	// it is.
	dictionaryID = 1
	// magic begins every frame, and is not kept.
	magic = "\x28\xb5\x2f\xfd"
	// window is how far back a match can be, in bytes. It has room for the dictionary and
	// all but the largest objects.
	window = 128 << 10
	// spare is memory that a decoder wants to have behind what it writes.
	spare = 16
)

// New returns a Codec with a dictionary, which must not change.
func New(dictionary []byte) *Codec { return &Codec{dictionary: dictionary} }

// DictionarySize returns the size of the dictionary in bytes.
func (c *Codec) DictionarySize() int { return len(c.dictionary) }

// Encode appends content to dst, compressed.
func (c *Codec) Encode(dst, content []byte) ([]byte, error) {
	encoder, ok := c.encoders.Get().(*zstd.Encoder)
	if !ok {
		var err error
		encoder, err = zstd.NewWriter(nil,
			zstd.WithEncoderDictRaw(dictionaryID, c.dictionary),
			zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window),
			zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false),
			zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dst, fmt.Errorf("make an encoder: %w", err)
		}
	}
	before := len(dst)
	dst = encoder.EncodeAll(content, dst)
	c.encoders.Put(encoder)
	return slices.Delete(dst, before, before+len(magic)), nil
}

// Cost returns the total length of contents when they are encoded, in bytes.
func (c *Codec) Cost(contents [][]byte) int {
	total := 0
	var buffer []byte
	for _, content := range contents {
		var err error
		if buffer, err = c.Encode(buffer[:0], content); err != nil {
			return math.MaxInt
		}
		total += len(buffer)
	}
	return total
}

// Decode appends to dst the content of size bytes that Encode made data of.
func (c *Codec) Decode(dst []byte, data string, size int) ([]byte, error) {
	d, ok := c.decoders.Get().(*decoder)
	if !ok {
		made, err := zstd.NewReader(nil,
			zstd.WithDecoderDictRaw(dictionaryID, c.dictionary),
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return dst, fmt.Errorf("make a decoder: %w", err)
		}
		d = &decoder{Decoder: made}
	}
	dst = slices.Grow(dst, size+spare)
	d.in = append(append(d.in[:0], magic...), data...)
	dst, err := d.DecodeAll(d.in, dst)
	c.decoders.Put(d)
	if err != nil {
		return dst, fmt.Errorf("decompress: %w", err)
	}
	return dst, nil
}
