package codec

import (
	"encoding/binary"
	"math/bits"
)

// MaxDictionarySize is the size of the largest dictionary, in bytes. Twice as much saves less
// than it costs. With its tables, a Codec takes about twice as much.
const MaxDictionarySize = 32 << 10

const (
	// hashBits is the length of the hashes in a dictionary.
	hashBits = 13
	// hashedBytes is how many bytes a hash is made of.
	hashedBytes = 5
	// padding is how many bytes are behind a dictionary, so that a word can be read at each of
	// its positions.
	padding = 8
)

// The classes of bytes.
const (
	classDigit = iota
	classHex
	classLetter
	classOther
	classes
)

// dictionary is text that matches are looked for in.
type dictionary struct {
	// content is size bytes and padding.
	content []byte
	size    int
	// positionBits is the length of a position.
	positionBits uint
	// start is where a content is followed from.
	start int
	// positions holds the last position of each hash.
	positions [1 << hashBits]uint16
	// classOf holds the class of each byte.
	classOf [256]uint8
}

// newDictionary returns a dictionary of samples. It takes whole samples, as far as there is room,
// and not too much of any.
func newDictionary(samples [][]byte) *dictionary {
	total := 0
	for _, s := range samples {
		total += min(len(s), MaxDictionarySize/2)
	}
	// Evenly spaced samples, if not all of them fit.
	step := max(1, (total+MaxDictionarySize-1)/MaxDictionarySize)
	d := &dictionary{content: make([]byte, 0, min(total, MaxDictionarySize)+padding)}
	for i := 0; i < len(samples); i += step {
		part := samples[i][:min(len(samples[i]), MaxDictionarySize/2)]
		if room := MaxDictionarySize - len(d.content); len(part) > room {
			part = part[:room]
		} else {
			d.start = len(d.content)
		}
		d.content = append(d.content, part...)
	}
	d.size = len(d.content)
	d.positionBits = uint(bits.Len(uint(d.size)))
	d.content = append(d.content, make([]byte, padding)...)
	for i := 0; i+hashedBytes <= d.size; i++ {
		d.positions[hashOf(wordAt(d.content, i), hashBits)] = uint16(i)
	}
	for i := range d.classOf {
		d.classOf[i] = classOf(byte(i))
	}
	return d
}

// classAt returns the class of the byte at a position, which may lie outside of the dictionary.
func (d *dictionary) classAt(position int) uint8 {
	if uint(position) >= uint(len(d.content)) {
		return classOther
	}
	return d.classOf[d.content[position]]
}

func classOf(b byte) uint8 {
	switch {
	case b >= '0' && b <= '9':
		return classDigit
	case b >= 'a' && b <= 'f':
		return classHex
	case b >= 'g' && b <= 'z':
		return classLetter
	}
	return classOther
}

// hashOf returns the hash of the first bytes of word, of n bits.
func hashOf(word uint64, n uint) uint32 {
	return uint32(word << (64 - 8*hashedBytes) * 0x9e3779b97f4a7c15 >> (64 - n))
}

// wordAt returns the eight bytes at a position.
func wordAt(b []byte, position int) uint64 { return binary.LittleEndian.Uint64(b[position:]) }
