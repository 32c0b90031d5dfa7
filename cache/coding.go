package cache

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// coding is how contents are written: by zstd, against a dictionary of raw content. It
// belongs to one store, and lives as long as an entry that was written with it.
//
// Encoders and decoders are bound to a dictionary, and an encoder takes most of a megabyte.
// So there are only those in use, one of each as a rule; what lies idle for two rounds of
// the garbage collector is freed by it.
type coding struct {
	dictionary []byte
	encoders   sync.Pool // of *zstd.Encoder
	decoders   sync.Pool // of *decoder
	// entries is the number of entries that are written with it. Guarded by Store.mu.
	entries int
}

type decoder struct {
	*zstd.Decoder
	in []byte
}

const (
	// dictionaryID is needed for a frame to have a dictionary at all. Which one it is, the
	// entry knows.
	dictionaryID = 1
	// magic begins every frame, and is not kept.
	magic = "\x28\xb5\x2f\xfd"
	// window is how far back a match can be, in bytes. It has room for the dictionary and
	// all but the largest objects.
	window = 128 << 10
	// spare is memory that a decoder wants to have behind what it writes.
	spare = 16
)

func newCoding(dictionary []byte) *coding { return &coding{dictionary: dictionary} }

// encode appends content to dst, compressed.
func (c *coding) encode(dst, content []byte) ([]byte, error) {
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

// cost is the length of contents when they are encoded, in bytes.
func (c *coding) cost(contents [][]byte) int {
	total := 0
	var buffer []byte
	for _, content := range contents {
		var err error
		if buffer, err = c.encode(buffer[:0], content); err != nil {
			return math.MaxInt
		}
		total += len(buffer)
	}
	return total
}

// decode appends to dst what encode made data of, which was size bytes.
func (c *coding) decode(dst []byte, data string, size int) ([]byte, error) {
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
