package cache

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

var errNotJSON = errors.New("it is not well-formed JSON")

// scanner walks over JSON that a decoder has found to be well formed, as everything is that
// comes out of a stream. It does not check that again, which makes it several times as fast
// as a decoder. On anything else it fails or finds something else, but does not panic.
type scanner struct {
	data []byte
	at   int
}

// next skips white space, and is the byte that follows, or 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// enter steps into an object or an array, which open begins. It is false for anything else,
// which is skipped: null is an object without members.
func (s *scanner) enter(open byte) (bool, error) {
	if s.next() != open {
		return false, s.skip()
	}
	s.at++
	return true, nil
}

// more tells whether another element follows before end, and steps to it or behind end.
func (s *scanner) more(end byte) (bool, error) {
	switch s.next() {
	case end:
		s.at++
		return false, nil
	case ',':
		s.at++
		return true, nil
	case 0:
		return false, errNotJSON
	}
	return true, nil // the first one
}

// name reads the name of a member and steps to its value.
func (s *scanner) name() ([]byte, error) {
	name, err := s.text()
	if err != nil {
		return nil, err
	}
	if s.next() != ':' {
		return nil, errNotJSON
	}
	s.at++
	return name, nil
}

// text reads a string: a part of the data where that is possible.
func (s *scanner) text() ([]byte, error) {
	if s.next() != '"' {
		return nil, errNotJSON
	}
	from := s.at
	if err := s.skipText(); err != nil {
		return nil, err
	}
	text := s.data[from+1 : s.at-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		return jsontext.AppendUnquote(nil, s.data[from:s.at])
	}
	return text, nil
}

// skipText steps over a string.
func (s *scanner) skipText() error {
	// Nearly all strings are short, so that a loop is the fastest.
	for i := s.at + 1; i < len(s.data); i++ {
		switch s.data[i] {
		case '"':
			s.at = i + 1
			return nil
		case '\\':
			i++
		}
	}
	s.at = len(s.data)
	return errNotJSON
}

// skip steps over one value of any kind.
func (s *scanner) skip() error {
	switch s.next() {
	case 0:
		return errNotJSON
	case '"':
		return s.skipText()
	case '{', '[':
		return s.skipNested()
	}
	from := s.at
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ',', '}', ']', ':', ' ', '\t', '\n', '\r', '"', '{', '[':
			if s.at == from {
				return errNotJSON
			}
			return nil
		}
		s.at++
	}
	return nil
}

func (s *scanner) skipNested() error {
	data, depth := s.data, 0
	for i := s.at; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at = i + 1
				return nil
			}
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	s.at = len(data)
	return errNotJSON
}

// raw steps over a value and returns it as it is written.
func (s *scanner) raw() ([]byte, error) {
	s.next()
	from := s.at
	err := s.skip()
	return s.data[from:s.at], err
}

// textOrNull reads a string, or nothing from a null.
func (s *scanner) textOrNull() ([]byte, error) {
	if s.next() == '"' {
		return s.text()
	}
	raw, err := s.raw()
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	return nil, fmt.Errorf("there is %.20q in place of a string", raw)
}

// number reads an integer, or 0 from a null.
func (s *scanner) number() (int64, error) {
	raw, err := s.raw()
	if err != nil || string(raw) == "null" {
		return 0, err
	}
	return strconv.ParseInt(string(raw), 10, 64)
}

// boolean reads true or false, or false from a null.
func (s *scanner) boolean() (bool, error) {
	switch raw, err := s.raw(); {
	case err != nil:
		return false, err
	case string(raw) == "true":
		return true, nil
	case string(raw) == "false", string(raw) == "null":
		return false, nil
	default:
		return false, fmt.Errorf("there is %.20q in place of a boolean", raw)
	}
}
