package jsonscan

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep values may be nested, as in jsontext.
const maxDepth = 10_000

// ValidMembers calls f for each member of the object that data is, in their order, and reports
// whether data is one well-formed object with nothing but white space around it. It accepts what
// jsontext accepts with duplicate names and invalid UTF-8: both are what API servers may send. f
// may be called before data is known to be not well formed. The arguments of f are parts of data,
// unless the name has escapes.
func ValidMembers(data []byte, f func(name, value []byte)) bool {
	v := validator{data: data}
	if v.next() != '{' {
		return false
	}
	v.at++
	if v.next() == '}' {
		v.at++
		return v.next() == 0 && v.at == len(data)
	}
	for {
		from := v.at
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
		v.next()
		from = v.at
		if !v.skipValue(1) {
			return false
		}
		f(name, data[from:v.at])
		switch v.next() {
		case ',':
			v.at++
			v.next()
		case '}':
			v.at++
			return v.next() == 0 && v.at == len(data)
		default:
			return false
		}
	}
}

// validator walks over JSON, and finds out whether it is well formed.
type validator struct {
	data []byte
	at   int
	// nameEnd is where the closing quote of the last name is.
	nameEnd int
	// isObject has a bit for each value that is open: whether it is an object.
	isObject [maxDepth/64 + 1]uint64
}

// next steps over white space, and returns the byte that follows, or 0 at the end.
func (v *validator) next() byte {
	for ; v.at < len(v.data); v.at++ {
		if c := v.data[v.at]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// skipName steps over the name of a member and the colon behind it.
func (v *validator) skipName() bool {
	if v.at >= len(v.data) || v.data[v.at] != '"' || !v.skipText() {
		return false
	}
	v.nameEnd = v.at - 1
	if v.next() != ':' {
		return false
	}
	v.at++
	return true
}

// skipValue steps over a value inside of depth others.
func (v *validator) skipValue(depth int) bool {
	outside := depth
	for {
		switch c := v.next(); {
		case c == '"':
			if !v.skipText() {
				return false
			}
		case c == '{':
			if depth >= maxDepth {
				return false
			}
			v.at++
			if v.next() == '}' {
				v.at++
				break
			}
			v.isObject[depth/64] |= 1 << (depth % 64)
			depth++
			if !v.skipName() {
				return false
			}
			continue
		case c == '[':
			if depth >= maxDepth {
				return false
			}
			v.at++
			if v.next() == ']' {
				v.at++
				break
			}
			v.isObject[depth/64] &^= 1 << (depth % 64)
			depth++
			continue
		case c == '-' || c >= '0' && c <= '9':
			if !v.skipNumber() {
				return false
			}
		case c == 't':
			if !v.skipLiteral("true") {
				return false
			}
		case c == 'f':
			if !v.skipLiteral("false") {
				return false
			}
		case c == 'n':
			if !v.skipLiteral("null") {
				return false
			}
		default:
			return false
		}
		// A value has ended, and so may those that it is in.
		for {
			if depth == outside {
				return true
			}
			c := v.next()
			isObject := v.isObject[(depth-1)/64]>>((depth-1)%64)&1 != 0
			v.at++
			if c == ',' {
				if isObject {
					v.next()
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
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipText steps over a string, at whose opening quote v is.
func (v *validator) skipText() bool {
	data, i := v.data, v.at+1
	for {
		for i+8 <= len(data) {
			word := binary.LittleEndian.Uint64(data[i:])
			quote, escape := word^('"'*ones), word^('\\'*ones)
			// The highest bit of a byte is set in found if it is a quote, a backslash or below a
			// space. Bytes behind the first one that is found may have it for nothing.
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
			v.at = i + 1
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

// escapeLength returns the length of the escape at the beginning of data, or 0 if it is none.
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

// skipNumber steps over a number.
func (v *validator) skipNumber() bool {
	if v.data[v.at] == '-' {
		v.at++
	}
	if v.at < len(v.data) && v.data[v.at] == '0' {
		v.at++
	} else if !v.skipDigits() {
		return false
	}
	if v.at < len(v.data) && v.data[v.at] == '.' {
		v.at++
		if !v.skipDigits() {
			return false
		}
	}
	if v.at < len(v.data) && v.data[v.at]|' ' == 'e' {
		v.at++
		if v.at < len(v.data) && (v.data[v.at] == '+' || v.data[v.at] == '-') {
			v.at++
		}
		return v.skipDigits()
	}
	return true
}

// skipDigits steps over one digit or more.
func (v *validator) skipDigits() bool {
	from := v.at
	for v.at < len(v.data) && v.data[v.at] >= '0' && v.data[v.at] <= '9' {
		v.at++
	}
	return v.at > from
}

// skipLiteral steps over literal.
func (v *validator) skipLiteral(literal string) bool {
	if len(v.data)-v.at < len(literal) || string(v.data[v.at:v.at+len(literal)]) != literal {
		return false
	}
	v.at += len(literal)
	return true
}
