// Package codec compresses contents that resemble one another, each by itself. A [Codec] writes
// them against a dictionary made of some of them; a [Compressor] decides when there are enough
// contents to make a dictionary of, and when another dictionary would be better.
//
// The format is that of [s2]: literal bytes, and copies from the dictionary or from the content
// before. For example, with {"name":"web-0","replicas":1} in the dictionary, the content
// {"name":"web-7","replicas":1} becomes a copy of 13 bytes, the literal 7, and a copy of 15 bytes.
//
// A custom resource of 1.7 KB and a Pod of 5.1 KB take 268 and 593 bytes. With zstd they would take
// 223 and 394 bytes, and several times as long, mostly to restore and to describe the tables of zstd.
// zstd also needs a megabyte for each encoder, and 0.5 MB of a program. s2 adds nothing that shows.
package codec

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Codec compresses contents against a dictionary. It never changes, and may be used concurrently.
type Codec struct {
	dictionary *s2.Dict
	// size is the length of the dictionary in bytes.
	size int
	seed maphash.Seed
}

const (
	// MaxContentSize is the length of the largest content that can be encoded, in bytes.
	MaxContentSize = 1<<24 - 1
	// MaxDictionarySize is the size of the largest dictionary, in bytes. The table of its hashes
	// takes as much again.
	MaxDictionarySize = 32 << 10
	// checksumSize is the length of the checksum at the end of what is encoded, in bytes.
	checksumSize = 4
)

// errCorrupt is the error of Decode.
var errCorrupt = errors.New("decompress: the data is not what was encoded")

// New returns a Codec for contents that are like samples. The dictionary consists of whole samples,
// as far as there is room, and of not too much of any.
func New(samples [][]byte) *Codec {
	total := 0
	for _, s := range samples {
		total += min(len(s), MaxDictionarySize/2)
	}
	// Evenly spaced samples, if not all of them fit.
	step := max(1, (total+MaxDictionarySize-1)/MaxDictionarySize)
	text := make([]byte, 0, MaxDictionarySize)
	for i := 0; i < len(samples); i += step {
		part := samples[i][:min(len(samples[i]), MaxDictionarySize/2)]
		text = append(text, part[:min(len(part), MaxDictionarySize-len(text))]...)
	}
	if missing := s2.MinDictSize - len(text); missing > 0 {
		text = append(text, make([]byte, missing)...)
	}
	return &Codec{dictionary: s2.MakeDict(text, nil), size: len(text), seed: maphash.MakeSeed()}
}

// DictionarySize returns the size of the dictionary in bytes.
func (c *Codec) DictionarySize() int { return c.size }

// Encode appends content to dst, compressed. The content has at most MaxContentSize bytes.
func (c *Codec) Encode(dst, content []byte) []byte {
	before := len(dst)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(content))+checksumSize)
	encoded := c.dictionary.Encode(dst[before:], content) // in the room behind dst
	return binary.LittleEndian.AppendUint32(dst[:before+len(encoded)], c.checksum(content, encoded))
}

// Cost returns the total length of contents when they are encoded, in bytes.
func (c *Codec) Cost(contents [][]byte) int {
	total := 0
	var buffer []byte
	for _, content := range contents {
		buffer = c.Encode(buffer[:0], content)
		total += len(buffer)
	}
	return total
}

// Decode appends to dst the content of size bytes that Encode made data of. It returns an error if
// data is not what Encode made, or was made with another dictionary, as far as the checksum and the
// size show.
func (c *Codec) Decode(dst []byte, data string, size int) ([]byte, error) {
	if len(data) < checksumSize || size < 0 || size > MaxContentSize {
		return dst, errCorrupt
	}
	var room [1024]byte // most data fit in, so that their copy needs no allocation
	block := append(room[:0], data...)
	block, sum := block[:len(data)-checksumSize], binary.LittleEndian.Uint32(block[len(data)-checksumSize:])
	// The size that data announces is checked first: s2 allocates as much.
	if announced, err := s2.DecodedLen(block); err != nil || announced != size {
		return dst, errCorrupt
	}
	before := len(dst)
	grown := slices.Grow(dst, size)
	content, err := c.dictionary.Decode(grown[before:before], block) // in the room behind dst
	if err != nil || c.checksum(content, block) != sum {
		return dst, errCorrupt
	}
	return grown[:before+size], nil
}

// checksum returns a checksum of a content and of the block that it is encoded as. The two hashes
// find different mistakes: a damaged block, and a block that another codec made.
func (c *Codec) checksum(content, block []byte) uint32 {
	return uint32(maphash.Bytes(c.seed, content) ^ maphash.Bytes(c.seed, block))
}
