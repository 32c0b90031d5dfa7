package codec

import (
	"math/bits"
	"slices"
)

const (
	// maxCodeBits is the length of the longest word of a code, without what follows an escape.
	maxCodeBits = 10
	// escapedBits is the length of a symbol that follows an escape.
	escapedBits = 8
	// maxSymbolBits is what a symbol takes at most.
	maxSymbolBits = maxCodeBits + escapedBits
	// escape stands for all symbols that have no word. They follow it as they are.
	escape = 1 << escapedBits
	// symbolBits is the length of a symbol or an escape.
	symbolBits = escapedBits + 1
	// wordLengthBits is the length of the length of a word.
	wordLengthBits = 5
)

// code is a prefix code for the symbols below 256.
type code struct {
	// words holds the bits of each symbol, and in the lowest wordLengthBits their number.
	words []uint32
	// symbols holds, for the next maxCodeBits bits, a symbol and the length of its word.
	symbols [1 << maxCodeBits]uint16
}

// newCode returns a code in which the words of symbols are the shorter the more often the symbols
// occur. Symbols that did not occur have no word of their own.
func newCode(counts []int) code {
	type word struct{ symbol, count, length int }
	words := []word{{symbol: escape, count: 1}}
	total := 1
	for symbol, count := range counts {
		if count > 0 {
			words = append(words, word{symbol: symbol, count: count})
			total += count
		}
	}
	slices.SortStableFunc(words, func(a, b word) int { return b.count - a.count })
	// A word has as many bits as its share asks for, rounded up. What all words together take of
	// the room that there is may then be too much, because long ones are cut, or too little.
	room := 1 << maxCodeBits
	for i := range words {
		w := &words[i]
		for w.length = 1; w.length < maxCodeBits && w.count<<w.length < total; {
			w.length++
		}
		room -= 1 << (maxCodeBits - w.length)
	}
	for room < 0 {
		for i := len(words) - 1; i >= 0 && room < 0; i-- {
			if w := &words[i]; w.length < maxCodeBits {
				w.length++
				room += 1 << (maxCodeBits - w.length)
			}
		}
	}
	for i := range words {
		for w := &words[i]; w.length > 1 && room >= 1<<(maxCodeBits-w.length); {
			room -= 1 << (maxCodeBits - w.length)
			w.length--
		}
	}
	slices.SortStableFunc(words, func(a, b word) int { return a.length - b.length })
	c := code{words: make([]uint32, len(counts))}
	var escaping uint32
	next, length := uint32(0), 0
	for _, w := range words {
		next <<= w.length - length
		length = w.length
		// Readers see the first bit of a word in the lowest place.
		reversed := uint32(bits.Reverse16(uint16(next)) >> (16 - length))
		next++
		for i := int(reversed); i < len(c.symbols); i += 1 << length {
			c.symbols[i] = uint16(w.symbol | length<<symbolBits)
		}
		if w.symbol == escape {
			escaping = reversed<<wordLengthBits | uint32(length)
		} else {
			c.words[w.symbol] = reversed<<wordLengthBits | uint32(length)
		}
	}
	for symbol, word := range c.words {
		if word == 0 {
			length := escaping & (1<<wordLengthBits - 1)
			c.words[symbol] = escaping + uint32(symbol)<<(wordLengthBits+length) + escapedBits
		}
	}
	return c
}
