package codec

import "math/bits"

// step is a part of a content: some literals, and a match that follows them. The last step of a
// content may have no match.
type step struct {
	literals, length uint32
	// source depends on kind: nothing, a shift to which maxShift was added, a position in the
	// dictionary, or a distance.
	source uint32
	kind   uint8
}

// The kinds of matches.
const (
	// matchAligned is a match in the dictionary where the content is followed.
	matchAligned = iota
	// matchShifted is a match in the dictionary a little before or behind that place: a value was
	// shorter or longer.
	matchShifted
	// matchDictionary is a match anywhere in the dictionary.
	matchDictionary
	// matchContent is a match in the content before.
	matchContent
	kinds
)

const (
	// minMatch is the length of the shortest match.
	minMatch = 4
	// maxShift is how far a matchShifted is away at most.
	maxShift = 64
	// literalsSymbols and lengthSymbols are the numbers of symbols for the number of literals and
	// for the length of a match.
	literalsSymbols, lengthSymbols = 16 + 2*20, 32 + 4*19
	// maxStepBytes is what a step takes at most, without its literals, in bytes.
	maxStepBytes = 16
)

// literalsSymbol returns the symbol for a number of literals, and the bits that follow it.
func literalsSymbol(v uint32) (symbol, extra uint32, n uint) {
	if v < 16 {
		return v, 0, 0
	}
	n = uint(bits.Len32(v)) - 2
	return 16 + 2*uint32(n-3) + v>>n&1, v & (1<<n - 1), n
}

// literalsOf returns the number of literals that a symbol stands for, without its extra bits, and
// their length.
func literalsOf(symbol uint32) (base uint32, n uint) {
	if symbol < 16 {
		return symbol, 0
	}
	n = uint(symbol-16)/2 + 3
	return (2 | symbol&1) << n, n
}

// lengthSymbol returns the symbol for the length of a match, and the bits that follow it.
func lengthSymbol(v uint32) (symbol, extra uint32, n uint) {
	if v < 32 {
		return v, 0, 0
	}
	n = uint(bits.Len32(v)) - 3
	return 32 + 4*uint32(n-3) + v>>n&3, v & (1<<n - 1), n
}

// lengthOf returns the length that a symbol stands for, without its extra bits, and their length.
func lengthOf(symbol uint32) (base uint32, n uint) {
	if symbol < 32 {
		return symbol, 0
	}
	n = uint(symbol-32)/4 + 3
	return (4 | symbol&3) << n, n
}

// distanceBits returns the length, in bits, of the distance of a match at a position of a content.
func distanceBits(at int) uint { return uint(bits.Len(uint(at))) }

// counts holds how often each symbol of each code occurs.
type counts struct {
	steps    [literalsSymbols * kinds]int
	lengths  [lengthSymbols]int
	shifts   [2 * maxShift]int
	literals [classes][256]int
}

// add adds the symbols of a content.
func (n *counts) add(d *dictionary, content []byte, steps []step) {
	at, aligned := 0, d.start
	for _, s := range steps {
		symbol, _, _ := literalsSymbol(s.literals)
		n.steps[symbol*kinds+uint32(s.kind)]++
		for range s.literals {
			n.literals[d.classAt(aligned)][content[at]]++
			at++
			aligned++
		}
		if at == len(content) {
			break
		}
		symbol, _, _ = lengthSymbol(s.length - minMatch)
		n.lengths[symbol]++
		switch s.kind {
		case matchShifted:
			n.shifts[s.source]++
			aligned += int(s.source) - maxShift
		case matchDictionary:
			aligned = int(s.source)
		}
		at += int(s.length)
		aligned += int(s.length)
	}
}
