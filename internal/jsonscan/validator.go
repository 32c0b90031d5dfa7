package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep values may be nested, as in jsontext.
const MaxDepth = 10_000

// ValidMembers calls f for each member of the object in data, in their order, and reports
// whether data is one well-formed object with nothing but white space around it. It accepts what
// jsontext accepts with duplicate names and invalid UTF-8, because API servers may send both. f
// may be called before data is known to be not well formed. The arguments of f are parts of data,
// unless the name has escapes.
func ValidMembers(data []byte, f func(name, value []byte)) bool {
	v := Validator{Data: data}
	if v.Next() != '{' {
		return false
	}
	v.At++
	if v.Next() == '}' {
		v.At++
		return v.Next() == 0 && v.At == len(data)
	}
	for {
		from := v.At
		if !v.skipName() {
			return false
		}
		name := data[from+1 : v.nameEnd]
		if bytes.IndexByte(name, '\\') >= 0 {
			var err error
			if name, err = jsontext.AppendUnquote(nil, data[from:v.nameEnd+1]); err != nil {
				// Its UTF-8 is not valid. It is none of the names that anybody looks for.
				name = data[from+1 : v.nameEnd]
			}
		}
		v.Next()
		from = v.At
		if !v.SkipValue(1) {
			return false
		}
		f(name, data[from:v.At])
		switch v.Next() {
		case ',':
			v.At++
			v.Next()
		case '}':
			v.At++
			return v.Next() == 0 && v.At == len(data)
		default:
			return false
		}
	}
}

// Validator walks over JSON, and finds out whether it is well formed. It accepts what [ValidMembers]
// accepts. A Validator of which a method has returned false must not be used any more.
type Validator struct {
	Data []byte
	// At is the position in Data.
	At int
	// nameEnd is where the closing quote of the last name is.
	nameEnd int
	// isObject has a bit for each open value, which is set if the value is an object.
	isObject [MaxDepth/64 + 1]uint64
}

// Next steps over white space, and returns the byte that follows, or 0 at the end.
func (v *Validator) Next() byte {
	for ; v.At < len(v.Data); v.At++ {
		if c := v.Data[v.At]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// skipName steps over the name of a member and the colon behind it.
func (v *Validator) skipName() bool {
	if v.At >= len(v.Data) || v.Data[v.At] != '"' || !v.SkipText() {
		return false
	}
	v.nameEnd = v.At - 1
	if v.Next() != ':' {
		return false
	}
	v.At++
	return true
}

// SkipValue steps over a value that is nested in depth other values.
func (v *Validator) SkipValue(depth int) bool {
	outside := depth
	for {
		switch c := v.Next(); {
		case c == '"':
			if !v.SkipText() {
				return false
			}
		case c == '{':
			if depth >= MaxDepth {
				return false
			}
			v.At++
			if v.Next() == '}' {
				v.At++
				break
			}
			v.isObject[depth/64] |= 1 << (depth % 64)
			depth++
			if !v.skipName() {
				return false
			}
			continue
		case c == '[':
			if depth >= MaxDepth {
				return false
			}
			v.At++
			if v.Next() == ']' {
				v.At++
				break
			}
			v.isObject[depth/64] &^= 1 << (depth % 64)
			depth++
			continue
		case c == '-' || c >= '0' && c <= '9':
			if !v.SkipNumber() {
				return false
			}
		case c == 't':
			if !v.SkipLiteral("true") {
				return false
			}
		case c == 'f':
			if !v.SkipLiteral("false") {
				return false
			}
		case c == 'n':
			if !v.SkipLiteral("null") {
				return false
			}
		default:
			return false
		}
		// A value has ended, and the values that contain it may end here too.
		for {
			if depth == outside {
				return true
			}
			c := v.Next()
			isObject := v.isObject[(depth-1)/64]>>((depth-1)%64)&1 != 0
			v.At++
			if c == ',' {
				if isObject {
					v.Next()
					if !v.skipName() {
						return false
					}
				}
				break
			}
			if isObject && c != '}' || !isObject && c != ']' {
				return false
			}
			depth--
		}
	}
}

const (
	// ones has a 1 in each byte. A product with it has the same value in each byte.
	ones = 0x0101010101010101
	// highs has the highest bit of each byte.
	highs = 0x8080808080808080
)

// SkipText steps over a string, at whose opening quote v is. It looks at eight bytes at a time.
//
// For example, the bytes are web":123. The bytes of quote are their differences from a quote, so the byte at 3 is 0,
// and the others are not. A 0 minus 1 is 0xff, whose highest bit is set. So the string ends at 3.
func (v *Validator) SkipText() bool {
	data, i := v.Data, v.At+1
	for {
		for i+8 <= len(data) {
			word := binary.LittleEndian.Uint64(data[i:])
			quote, escape := word^('"'*ones), word^('\\'*ones)
			// The highest bit of a byte of found is set if the byte of word is a quote, a backslash or less than a space.
			// Only the first such byte counts: the bytes behind it may have the bit too, because the subtraction borrows
			// from them.
			found := (quote-ones)&^quote | (escape-ones)&^escape | (word-' '*ones)&^word
			if found &= highs; found != 0 {
				i += bits.TrailingZeros64(found) >> 3
				break
			}
			i += 8
		}
		for i < len(data) && data[i] != '"' && data[i] != '\\' && data[i] >= ' ' {
			i++
		}
		if i >= len(data) {
			return false
		}
		switch data[i] {
		case '"':
			v.At = i + 1
			return true
		case '\\':
			n := escapeLength(data[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			return false
		}
	}
}

// escapeLength returns the length of the escape at the beginning of data, or 0 if there is no escape.
func escapeLength(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	switch data[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(data) < 6 {
			return 0
		}
		for _, c := range data[2:6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// SkipNumber steps over a number.
func (v *Validator) SkipNumber() bool {
	if v.Data[v.At] == '-' {
		v.At++
	}
	if v.At < len(v.Data) && v.Data[v.At] == '0' {
		v.At++
	} else if !v.skipDigits() {
		return false
	}
	if v.At < len(v.Data) && v.Data[v.At] == '.' {
		v.At++
		if !v.skipDigits() {
			return false
		}
	}
	if v.At < len(v.Data) && v.Data[v.At]|' ' == 'e' {
		v.At++
		if v.At < len(v.Data) && (v.Data[v.At] == '+' || v.Data[v.At] == '-') {
			v.At++
		}
		return v.skipDigits()
	}
	return true
}

// skipDigits steps over one digit or more.
func (v *Validator) skipDigits() bool {
	from := v.At
	for v.At < len(v.Data) && v.Data[v.At] >= '0' && v.Data[v.At] <= '9' {
		v.At++
	}
	return v.At > from
}

// SkipLiteral steps over literal.
func (v *Validator) SkipLiteral(literal string) bool {
	if len(v.Data)-v.At < len(literal) || string(v.Data[v.At:v.At+len(literal)]) != literal {
		return false
	}
	v.At += len(literal)
	return true
}
