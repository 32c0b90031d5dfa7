package codec

import (
	"encoding/binary"
	"math/bits"
)

const (
	// recentBits is the length of the hashes of a content.
	recentBits = 12
	// minShifted, minContent and minDictionary are the lengths of the shortest matches of their
	// kinds that are worth it.
	minShifted, minContent, minDictionary = 5, 5, 6
	// enough is the length of a match for which no other one is looked for.
	enough = 16
	// resyncWithin is how far behind the beginning of a value its end is looked for in the
	// dictionary.
	resyncWithin = 48
	// noiseBits decides how many literals in a row make the search coarser.
	noiseBits = 6
	// keptSteps is how many steps a parser keeps room for.
	keptSteps = 4096
)

// parser cuts contents into steps. It must not be used concurrently.
type parser struct {
	// recent holds, for each hash, the sum of base and its last position in the content. A sum
	// below base belongs to an earlier content.
	recent [1 << recentBits]uint32
	base   uint32
	steps  []step
}

// match is a candidate for the next match.
type match struct {
	from, length int
	kind         uint8
}

// parse returns the steps of a content, which are valid until the next call.
func (p *parser) parse(d *dictionary, content []byte) []step {
	p.steps = p.steps[:0]
	if p.base == 0 || p.base > 1<<31 {
		clear(p.recent[:])
		p.base = 1
	}
	at, literals, aligned := 0, 0, d.start
	for at+8 <= len(content) {
		m := p.find(d, content, at, literals, aligned)
		if m.length == 0 {
			skip := 1 + literals>>noiseBits
			at += skip
			literals += skip
			aligned += skip
			continue
		}
		// The bytes before may match as well.
		source := d.content
		if m.kind == matchContent {
			source = content
		}
		for literals > 0 && m.from > 0 && content[at-1] == source[m.from-1] {
			at, literals, aligned = at-1, literals-1, aligned-1
			m.from, m.length = m.from-1, m.length+1
		}
		s := step{literals: uint32(literals), length: uint32(m.length), kind: m.kind}
		if m.kind == matchContent {
			s.source = uint32(at - m.from)
		} else {
			switch shift := m.from - aligned; {
			case shift == 0:
				s.kind = matchAligned
			case shift >= -maxShift && shift < maxShift:
				s.kind, s.source = matchShifted, uint32(shift+maxShift)
			default:
				s.kind, s.source = matchDictionary, uint32(m.from)
			}
			aligned = m.from
		}
		p.steps = append(p.steps, s)
		p.recordMatch(content, at, m.length)
		at += m.length
		aligned += m.length
		literals = 0
	}
	p.base += uint32(len(content))
	if rest := len(content) - at + literals; rest > 0 {
		p.steps = append(p.steps, step{literals: uint32(rest)})
	}
	return p.steps
}

// find returns the best match at a position of a content that so many literals precede. The length of
// the match is 0 if no match is worth it.
func (p *parser) find(d *dictionary, content []byte, at, literals, aligned int) (m match) {
	word := wordAt(content, at)
	hash := hashOf(word, recentBits)
	recent := p.recent[hash]
	p.recent[hash] = p.base + uint32(at)
	if uint(aligned) < uint(d.size) && uint32(wordAt(d.content, aligned)) == uint32(word) {
		if n := matchLength(content[at:], d.content[aligned:d.size]); n >= minMatch {
			m = match{from: aligned, length: n, kind: matchAligned}
			if n >= enough {
				return m
			}
		}
	}
	if literals > 0 && isDelimiter(content[at]) {
		begin := aligned - literals
		for i := max(begin, 0); i < min(begin+resyncWithin, d.size); i++ {
			if d.content[i] != content[at] {
				continue
			}
			if n := matchLength(content[at:], d.content[i:d.size]); n >= minShifted && n > m.length+1 {
				m = match{from: i, length: n, kind: matchShifted}
			}
			break
		}
		if m.length >= enough {
			return m
		}
	}
	if recent >= p.base {
		from := int(recent - p.base)
		if isSameStart(wordAt(content, from), word) {
			if n := matchLength(content[at:], content[from:at]); n >= minContent && n > m.length+2 {
				m = match{from: from, length: n, kind: matchContent}
			}
		}
	}
	from := int(d.positions[hashOf(word, hashBits)])
	if isSameStart(wordAt(d.content, from), word) {
		n := matchLength(content[at:], d.content[from:d.size])
		if n >= minDictionary && n > m.length+2 {
			m = match{from: from, length: n, kind: matchDictionary}
		}
	}
	return m
}

// recordMatch records some positions of a match.
func (p *parser) recordMatch(content []byte, at, length int) {
	last := len(content) - 8
	for i := at + 1; i <= min(at+min(length, 12)-1, last); i += 2 {
		p.recent[hashOf(wordAt(content, i), recentBits)] = p.base + uint32(i)
	}
	if i := at + length - 2; i <= last {
		p.recent[hashOf(wordAt(content, i), recentBits)] = p.base + uint32(i)
	}
}

// trim frees the memory that a large content has taken.
func (p *parser) trim() {
	if cap(p.steps) > keptSteps {
		p.steps = nil
	}
}

// isDelimiter reports whether values end with such a byte.
func isDelimiter(b byte) bool { return b == '"' || b == ',' || b == '-' || b == '.' }

// isSameStart reports whether two words have the bytes in common that are hashed.
func isSameStart(a, b uint64) bool { return (a^b)<<(64-8*hashedBytes) == 0 }

// matchLength returns how many bytes a and b have in common at their beginnings.
func matchLength(a, b []byte) int {
	limit := min(len(a), len(b))
	n := 0
	for ; n+8 <= limit; n += 8 {
		if different := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); different != 0 {
			return n + bits.TrailingZeros64(different)>>3
		}
	}
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}
