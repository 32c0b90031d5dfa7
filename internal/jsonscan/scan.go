// Package jsonscan finds parts of JSON that a decoder has found to be well formed, as
// everything is that comes out of a stream. It does not check that again, which makes it
// several times as fast as a decoder.
package jsonscan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrNotJSON is the error of all methods for what is not well formed.
var ErrNotJSON = errors.New("it is not well-formed JSON")

// Scanner walks over JSON that is well formed. On anything else it fails or finds something
// else, but does not panic. It is for one goroutine.
type Scanner struct {
	data []byte
	at   int
}

// Of is a Scanner at the beginning of data.
func New(data []byte) Scanner { return Scanner{data: data} }

// Next skips white space, and is the byte that follows, or 0 at the end.
func (s *Scanner) Next() byte {
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

// Enter steps into an object or an array, which open begins. It is false for anything else,
// which is skipped: null is an object without members.
func (s *Scanner) Enter(open byte) (bool, error) {
	if s.Next() != open {
		return false, s.Skip()
	}
	s.at++
	return true, nil
}

// More tells whether another element follows before end, and steps to it or behind end.
func (s *Scanner) More(end byte) (bool, error) {
	switch s.Next() {
	case end:
		s.at++
		return false, nil
	case ',':
		s.at++
		return true, nil
	case 0:
		return false, ErrNotJSON
	}
	return true, nil // the first one
}

// Name reads the name of a member and steps to its value.
func (s *Scanner) Name() ([]byte, error) {
	name, err := s.Text()
	if err != nil {
		return nil, err
	}
	if s.Next() != ':' {
		return nil, ErrNotJSON
	}
	s.at++
	return name, nil
}

// Members calls f for each member of the object that s is at; f has to step over its value.
// An error of f does not end that, unless it is [ErrNotJSON]: the first one is returned, with
// the name of its member. Anything but an object is stepped over.
func (s *Scanner) Members(f func(name []byte) error) error {
	var first error
	ok, err := s.Enter('{')
	for ok && err == nil {
		if ok, err = s.More('}'); !ok || err != nil {
			break
		}
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		if e := f(name); errors.Is(e, ErrNotJSON) {
			err = e
		} else if e != nil && first == nil {
			first = fmt.Errorf("%s: %w", name, e)
		}
	}
	return cmp.Or(err, first)
}

// Find steps to the value of a member of the object that s is at. It is false if there is
// none, or no object.
func (s *Scanner) Find(member string) (bool, error) {
	if ok, err := s.Enter('{'); err != nil || !ok {
		return false, err
	}
	for {
		if more, err := s.More('}'); err != nil || !more {
			return false, err
		}
		name, err := s.Name()
		if err != nil || string(name) == member {
			return err == nil, err
		}
		if err := s.Skip(); err != nil {
			return false, err
		}
	}
}

// Text reads a string: a part of the data where that is possible.
func (s *Scanner) Text() ([]byte, error) {
	if s.Next() != '"' {
		return nil, ErrNotJSON
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
func (s *Scanner) skipText() error {
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
	return ErrNotJSON
}

// Skip steps over one value of any kind.
func (s *Scanner) Skip() error {
	switch s.Next() {
	case 0:
		return ErrNotJSON
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
				return ErrNotJSON
			}
			return nil
		}
		s.at++
	}
	return nil
}

func (s *Scanner) skipNested() error {
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
	return ErrNotJSON
}

// Raw steps over a value and returns it as it is written.
func (s *Scanner) Raw() ([]byte, error) {
	s.Next()
	from := s.at
	err := s.Skip()
	return s.data[from:s.at], err
}

// TextOrNull reads a string, or nothing from a null.
func (s *Scanner) TextOrNull() ([]byte, error) {
	if s.Next() == '"' {
		return s.Text()
	}
	raw, err := s.Raw()
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	return nil, fmt.Errorf("there is %.20q in place of a string", raw)
}

// Number reads an integer, or 0 from a null.
func (s *Scanner) Number() (int64, error) {
	raw, err := s.Raw()
	if err != nil || string(raw) == "null" {
		return 0, err
	}
	return strconv.ParseInt(string(raw), 10, 64)
}

// Boolean reads true or false, or false from a null.
func (s *Scanner) Boolean() (bool, error) {
	switch raw, err := s.Raw(); {
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
