package codec

import (
	"encoding/binary"
	"slices"
)

// bitWriter appends numbers of some bits, the lowest bits first.
type bitWriter struct {
	dst []byte
	at  int
	// pending holds the last count bits.
	pending uint64
	count   uint
}

// newBitWriter returns a bitWriter that appends at most size bytes to dst.
func newBitWriter(dst []byte, size int) bitWriter {
	at := len(dst)
	dst = slices.Grow(dst, size+16)
	return bitWriter{dst: dst[:cap(dst)], at: at}
}

// maxPendingBits is how many bits can be written between two flushes.
const maxPendingBits = 57

// write writes the n lowest bits of v, whose other bits are 0.
func (w *bitWriter) write(v uint32, n uint) {
	w.pending |= uint64(v) << (w.count & 63)
	w.count += n
}

// writeSymbol writes a symbol in a code.
func (w *bitWriter) writeSymbol(c *code, symbol uint32) {
	word := c.words[symbol]
	w.write(word>>wordLengthBits, uint(word&(1<<wordLengthBits-1)))
}

func (w *bitWriter) flush() {
	binary.LittleEndian.PutUint64(w.dst[w.at:], w.pending)
	w.at += int(w.count >> 3)
	w.pending >>= w.count &^ 7 & 63
	w.count &= 7
}

// end returns what was written.
func (w *bitWriter) end() []byte {
	w.flush()
	if w.count > 0 {
		w.at++
	}
	return w.dst[:w.at]
}

// bitReader reads what a bitWriter wrote. Behind the end it reads zeros.
type bitReader struct {
	data string
	// at is the number of bytes that were read, or that would have been.
	at int
	// pending holds the next count bits.
	pending uint64
	count   uint
}

// fill makes at least 56 bits available.
func (r *bitReader) fill() {
	if at := r.at; at+8 <= len(r.data) {
		s := r.data[at : at+8]
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		r.pending |= v << (r.count & 63)
		r.at += int(63-r.count) >> 3
		r.count |= 56
		return
	}
	for r.count <= 55 {
		if r.at < len(r.data) {
			r.pending |= uint64(r.data[r.at]) << (r.count & 63)
		}
		r.at++
		r.count += 8
	}
}

// read returns the next n bits.
func (r *bitReader) read(n uint) uint32 {
	v := uint32(r.pending) & (1<<(n&31) - 1)
	r.pending >>= n & 63
	r.count -= n
	return v
}

// readSymbol returns the next symbol of a code.
func (r *bitReader) readSymbol(c *code) uint32 {
	entry := c.symbols[r.pending&(1<<maxCodeBits-1)]
	n := uint(entry >> symbolBits)
	r.pending >>= n & 63
	r.count -= n
	if symbol := uint32(entry & (1<<symbolBits - 1)); symbol != escape {
		return symbol
	}
	return r.read(escapedBits)
}

// isAtEnd reports whether everything was read and nothing else.
func (r *bitReader) isAtEnd() bool {
	left := 8*(len(r.data)-r.at) + int(r.count)
	return left >= 0 && left < 8 && r.pending == 0
}

// checksum returns a checksum of data.
func checksum[T string | []byte](data T) uint16 {
	const factor = 0x9e3779b97f4a7c15
	sum := uint64(len(data))
	i := 0
	for ; i+8 <= len(data); i += 8 {
		s := data[i : i+8]
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		sum = (sum ^ word) * factor
		sum ^= sum >> 32
	}
	for ; i < len(data); i++ {
		sum = (sum ^ uint64(data[i])) * factor
		sum ^= sum >> 32
	}
	return uint16(sum >> 16)
}
