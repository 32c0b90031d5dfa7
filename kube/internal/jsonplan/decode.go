// Package jsonplan decodes JSON into the types of Kubernetes, two to three times as fast as a
// decoder of all types. A [Decoder] looks at each type once, and makes a plan of the type. The plan of
//
//	struct {
//		Name string   `json:"name"`
//		Args []string `json:"args"`
//	}
//
// lists two fields: "name" decodes a string into field 0, and "args" decodes strings into field 1. The
// input {"name":"web","port":80} sets field 0, skips port, and leaves field 1 nil.
//
// A plan adds no rules. It leaves what is not plain to the decoder of all types, which is package kubejson. Types that
// are not plain are interfaces with methods, floating-point numbers, and structs with unusual tags. Values that are not
// plain have duplicate members, invalid UTF-8, or mistakes.
package jsonplan

import (
	stdjson "encoding/json"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Decoder decodes JSON by plans. It is safe for concurrent use.
type Decoder struct {
	planner planner
	// roots holds the complete plans of the types that were decoded. *typePlan by reflect.Type.
	roots sync.Map
	// states holds states that are not in use.
	states sync.Pool // of *decodeState
}

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder { return new(Decoder) }

// Decode decodes data into the zero value that into points to, and reports whether it succeeded. If so, the
// value is the value that the decoder of all types would make. If Decode returns false, the value may
// be anything, and the decoder of all types has to decide.
func (d *Decoder) Decode(data []byte, into any) bool {
	v := reflect.ValueOf(into).Elem()
	p := d.planOf(v.Type())
	if p.kind == kindOther {
		return false
	}
	s, ok := d.states.Get().(*decodeState)
	if !ok {
		s = &decodeState{decoder: d}
	}
	s.Data, s.At = data, 0
	ok = s.Next() == '{' && s.decode(p, v, 0) && s.Next() == 0 && s.At == len(data)
	s.Data = nil
	d.states.Put(s)
	return ok
}

// planOf returns the complete plan of a type.
func (d *Decoder) planOf(t reflect.Type) *typePlan {
	if p, ok := d.roots.Load(t); ok {
		return p.(*typePlan)
	}
	p := d.planner.plan(t)
	d.roots.Store(t, p)
	return p
}

// decodeState is the state of one call of Decode: its JSON, and the position in the JSON.
type decodeState struct {
	jsonscan.Validator
	decoder *Decoder
	// texts holds short strings that were decoded, by their hashes. Objects of one kind have many
	// of them in common.
	texts [256]string
}

// maxShared is the length of the longest string in texts.
const maxShared = 32

// decode decodes the value at s into v, a zero value, and reports whether it succeeded. The value is
// nested in depth other values.
func (s *decodeState) decode(p *typePlan, v reflect.Value, depth int) bool {
	c := s.Next()
	if c == 'n' && p.kind != kindMethod && p.kind != kindOther {
		return s.SkipLiteral("null")
	}
	switch p.kind {
	case kindString:
		text, ok := s.text()
		if ok {
			v.SetString(s.stringOf(text))
		}
		return ok
	case kindStruct:
		return s.decodeStruct(p, v, depth)
	case kindPointer:
		elem := reflect.New(p.elem.t)
		v.Set(elem)
		return s.decode(p.elem, elem.Elem(), depth)
	case kindSlice:
		return s.decodeSlice(p, v, depth)
	case kindStringMap:
		return s.decodeStringMap(v.Addr().Interface().(*map[string]string))
	case kindMap:
		return s.decodeMap(p, v, depth)
	case kindStrings:
		return s.decodeStrings(p, v.Addr().Interface().(*[]string))
	case kindBool:
		if c == 't' {
			v.SetBool(true)
			return s.SkipLiteral("true")
		}
		return s.SkipLiteral("false")
	case kindInt:
		number, ok := s.number(c)
		if !ok {
			return false
		}
		i, err := strconv.ParseInt(string(number), 10, p.t.Bits())
		v.SetInt(i)
		return err == nil
	case kindUint:
		number, ok := s.number(c)
		if !ok {
			return false
		}
		i, err := strconv.ParseUint(string(number), 10, p.t.Bits())
		v.SetUint(i)
		return err == nil
	case kindTime:
		return s.decodeTime(v.Addr().Interface().(*metav1.Time))
	case kindAny:
		value, ok := s.anyValue(c, depth)
		if ok {
			v.Set(reflect.ValueOf(value))
		}
		return ok
	}
	from := s.At
	if !s.SkipValue(depth) {
		return false
	}
	raw, to := s.Data[from:s.At:s.At], v.Addr().Interface()
	if p.kind == kindMethod && c != 'n' {
		return to.(stdjson.Unmarshaler).UnmarshalJSON(raw) == nil
	}
	return json.Unmarshal(raw, to, kubejson.OnePass()) == nil
}

// decodeStruct decodes a struct, which has not more than maxFields fields.
func (s *decodeState) decodeStruct(p *typePlan, v reflect.Value, depth int) bool {
	if depth >= jsonscan.MaxDepth || !s.step('{') {
		return false
	}
	if s.Next() == '}' {
		s.At++
		return true
	}
	var seen [maxFields / 64]uint64
	for {
		name, ok := s.name()
		if !ok {
			return false
		}
		if i := p.find(name); i < 0 {
			if s.Next(); !s.SkipValue(depth + 1) {
				return false
			}
		} else {
			bit := uint64(1) << (i % 64)
			if seen[i/64]&bit != 0 {
				return false
			}
			seen[i/64] |= bit
			f := &p.fields[i]
			at := v.Field(f.index[0])
			for _, j := range f.index[1:] {
				at = at.Field(j)
			}
			if !s.decode(f.plan, at, depth+1) {
				return false
			}
		}
		if more, ok := s.more('}'); !more {
			return ok
		}
	}
}

func (s *decodeState) decodeSlice(p *typePlan, v reflect.Value, depth int) bool {
	if depth >= jsonscan.MaxDepth || !s.step('[') {
		return false
	}
	if s.Next() == ']' {
		s.At++
		v.Set(reflect.MakeSlice(p.t, 0, 0))
		return true
	}
	v.Set(reflect.MakeSlice(p.t, 0, p.firstCapacity))
	for n := 0; ; n++ {
		if n == v.Cap() {
			v.Grow(n)
		}
		v.SetLen(n + 1)
		if !s.decode(p.elem, v.Index(n), depth+1) {
			return false
		}
		if more, ok := s.more(']'); !more {
			return ok
		}
	}
}

func (s *decodeState) decodeStrings(p *typePlan, to *[]string) bool {
	if !s.step('[') {
		return false
	}
	if s.Next() == ']' {
		s.At++
		*to = []string{}
		return true
	}
	texts := make([]string, 0, p.firstCapacity)
	for {
		s.Next()
		text, ok := s.text()
		if !ok {
			return false
		}
		texts = append(texts, s.stringOf(text))
		if more, ok := s.more(']'); !more {
			*to = texts
			return ok
		}
	}
}

// decodeMap decodes a map, whose keys are strings.
func (s *decodeState) decodeMap(p *typePlan, v reflect.Value, depth int) bool {
	if depth >= jsonscan.MaxDepth || !s.step('{') {
		return false
	}
	m := reflect.MakeMap(p.t)
	v.Set(m)
	if s.Next() == '}' {
		s.At++
		return true
	}
	key, elem := reflect.New(p.t.Key()).Elem(), reflect.New(p.elem.t).Elem()
	for n := 1; ; n++ {
		name, ok := s.name()
		if !ok {
			return false
		}
		key.SetString(s.stringOf(name))
		elem.SetZero()
		if !s.decode(p.elem, elem, depth+1) {
			return false
		}
		m.SetMapIndex(key, elem)
		if more, ok := s.more('}'); !more {
			return ok && m.Len() == n
		}
	}
}

func (s *decodeState) decodeStringMap(to *map[string]string) bool {
	if !s.step('{') {
		return false
	}
	m := make(map[string]string)
	*to = m
	if s.Next() == '}' {
		s.At++
		return true
	}
	for n := 1; ; n++ {
		name, ok := s.name()
		if !ok {
			return false
		}
		key := s.stringOf(name)
		s.Next()
		text, ok := s.text()
		if !ok {
			return false
		}
		m[key] = s.stringOf(text)
		if more, ok := s.more('}'); !more {
			return ok && len(m) == n
		}
	}
}

// anyValue returns a value that is not null as an any has it. Its first byte is c, and it is nested in depth other
// values.
func (s *decodeState) anyValue(c byte, depth int) (any, bool) {
	switch c {
	case '{':
		return s.anyMembers(depth)
	case '[':
		return s.anyElements(depth)
	case '"':
		text, ok := s.text()
		return s.stringOf(text), ok
	case 't':
		return true, s.SkipLiteral("true")
	case 'f':
		return false, s.SkipLiteral("false")
	}
	number, ok := s.number(c)
	if !ok {
		return nil, false
	}
	value, err := kubejson.Number(number)
	return value, err == nil
}

// anyMembers returns an object as an any has it.
func (s *decodeState) anyMembers(depth int) (map[string]any, bool) {
	if depth >= jsonscan.MaxDepth {
		return nil, false
	}
	s.At++
	members := make(map[string]any)
	if s.Next() == '}' {
		s.At++
		return members, true
	}
	for n := 1; ; n++ {
		text, ok := s.name()
		if !ok {
			return nil, false
		}
		name := s.stringOf(text)
		if members[name], ok = s.anyOrNull(depth + 1); !ok {
			return nil, false
		}
		if more, ok := s.more('}'); !more {
			return members, ok && len(members) == n
		}
	}
}

// anyElements returns an array as an any has it.
func (s *decodeState) anyElements(depth int) ([]any, bool) {
	if depth >= jsonscan.MaxDepth {
		return nil, false
	}
	s.At++
	elements := []any{}
	if s.Next() == ']' {
		s.At++
		return elements, true
	}
	for {
		element, ok := s.anyOrNull(depth + 1)
		if !ok {
			return nil, false
		}
		elements = append(elements, element)
		if more, ok := s.more(']'); !more {
			return elements, ok
		}
	}
}

// anyOrNull returns the next value as anyValue does. A null is nil.
func (s *decodeState) anyOrNull(depth int) (any, bool) {
	c := s.Next()
	if c == 'n' {
		return nil, s.SkipLiteral("null")
	}
	return s.anyValue(c, depth)
}

// decodeTime decodes a time as UnmarshalJSON of Time does.
func (s *decodeState) decodeTime(to *metav1.Time) bool {
	text, ok := s.text()
	if !ok {
		return false
	}
	t, err := time.Parse(time.RFC3339, string(text))
	to.Time = t.Local()
	return err == nil
}

// step steps over a byte, if it is the next one.
func (s *decodeState) step(c byte) bool {
	if s.Next() != c {
		return false
	}
	s.At++
	return true
}

// more steps over a comma and returns true, or over end, the closing byte of an object or an array,
// and returns false. ok is false if there is neither.
func (s *decodeState) more(end byte) (more, ok bool) {
	switch s.Next() {
	case ',':
		s.At++
		return true, true
	case end:
		s.At++
		return false, true
	}
	return false, false
}

// name returns the name of a member and steps to its value. It returns false as text does.
func (s *decodeState) name() ([]byte, bool) {
	s.Next()
	name, ok := s.text()
	return name, ok && s.step(':')
}

// text returns a string, which is valid until the next call. It returns false if there is no string, or
// if its UTF-8 is not valid.
func (s *decodeState) text() ([]byte, bool) {
	from := s.At
	if from >= len(s.Data) || s.Data[from] != '"' {
		return nil, false
	}
	// Nearly all strings are short, and have no escapes.
	for i := from + 1; i < len(s.Data); i++ {
		c := s.Data[i]
		if c == '"' {
			s.At = i + 1
			return s.Data[from+1 : i], true
		}
		if c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	if !s.SkipText() {
		return nil, false
	}
	text, err := jsontext.AppendUnquote(nil, s.Data[from:s.At])
	return text, err == nil
}

// stringOf returns a text as a string.
func (s *decodeState) stringOf(text []byte) string {
	n := len(text)
	if n == 0 {
		return ""
	}
	if n > maxShared {
		return string(text)
	}
	h := uint(n)
	for _, c := range text {
		h = h*31 + uint(c)
	}
	shared := &s.texts[(h^h>>8)%uint(len(s.texts))]
	if *shared != string(text) {
		*shared = string(text)
	}
	return *shared
}

// number returns a number, whose first byte is c. It returns false if there is no number.
func (s *decodeState) number(c byte) ([]byte, bool) {
	from := s.At
	if c != '-' && (c < '0' || c > '9') || !s.SkipNumber() {
		return nil, false
	}
	return s.Data[from:s.At], true
}
