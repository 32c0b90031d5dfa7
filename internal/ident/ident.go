// Package ident keeps what identifies a version of an object in little memory.
package ident

import (
	"encoding/hex"
	"hash/maphash"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// hashSeed is set once and for all, so that hashes can be compared.
var hashSeed = maphash.MakeSeed()

// UID is a uid, which may be empty, in as little memory as it takes: its 16 bytes if it is
// written as all servers do, otherwise a hash, beside which the text itself has to be kept.
type UID [16]byte

// MakeUID is false for a uid that String cannot give back.
func NewUID(text string) (u UID, exact bool) {
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		var digits [32]byte
		copy(digits[:], text[:8])
		copy(digits[8:], text[9:13])
		copy(digits[12:], text[14:18])
		copy(digits[16:], text[19:23])
		copy(digits[20:], text[24:])
		if _, err := hex.Decode(u[:], digits[:]); err == nil && u != (UID{}) && u.String() == types.UID(text) {
			return u, true
		}
	}
	if text == "" {
		return UID{}, true
	}
	h := maphash.String(hashSeed, text)
	for i := range 8 {
		u[i] = byte(h >> (8 * i))
	}
	return u, false
}

// String is the uid as servers write it.
func (u UID) String() types.UID {
	var b [36]byte
	hex.Encode(b[:], u[:4])
	hex.Encode(b[9:], u[4:6])
	hex.Encode(b[14:], u[6:8])
	hex.Encode(b[19:], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return types.UID(b[:])
}

// makeVersion is a resourceVersion as a number; it is false for one that is no number, or
// is not written as one would write it.
func makeVersion(text string) (v uint64, exact bool) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || text[0] == '0' || text[0] == '+' {
		return 0, false
	}
	return v, true
}
