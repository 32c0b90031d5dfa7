// Package projection reduces objects to the fields of a Go type.
package projection

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/jsonscan"
)

// Fields are the JSON fields that a type has. A field without fields of its own stands for its
// whole value. The fields of a list are the fields of its elements. Fields must not be
// changed.
type Fields struct {
	// byName is nil if the whole value is kept.
	byName map[string]*Fields
}

// Of returns the fields of the type of an object, by the rules of encoding/json. The kind, the
// apiVersion and the metadata are not among them, because every projection has them. The values of
// maps, of interfaces, and of types that decode themselves are kept whole.
func Of(t reflect.Type) (*Fields, error) {
	f := &Fields{byName: make(map[string]*Fields)}
	if err := f.addStruct(t, nil); err != nil {
		return nil, err
	}
	for _, always := range []string{"kind", "apiVersion", "metadata"} {
		delete(f.byName, always)
	}
	return f, nil
}

// addStruct adds the fields of a struct type. within are the types that t is a part of.
func (f *Fields) addStruct(t reflect.Type, within []reflect.Type) error {
	within = append(within, t)
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" && options == "" || !field.IsExported() && !field.Anonymous {
			continue
		}
		inner := elementOf(field.Type)
		if isStruct := inner.Kind() == reflect.Struct; isStruct && name == "" && field.Anonymous {
			if err := f.addStruct(inner, within); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = field.Name
		}
		if strings.ContainsAny(name, ".,") {
			return fmt.Errorf("the JSON name %q of the field %s has a dot or a comma: a projection cannot have it",
				name, field.Name)
		}
		child := &Fields{}
		if hasFields(inner) && !slices.Contains(within, inner) {
			child.byName = make(map[string]*Fields)
			if err := child.addStruct(inner, within); err != nil {
				return err
			}
		}
		f.byName[name] = child
	}
	return nil
}

// elementOf returns the type that pointers, slices and arrays lead to.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	return t
}

// hasFields reports whether the fields of a type decide what is decoded.
func hasFields(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[metav1.ObjectMeta]() {
		return false
	}
	p := reflect.PointerTo(t)
	for _, decodes := range []reflect.Type{
		reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if p.Implements(decodes) {
			return false
		}
	}
	return true
}

// Parse returns the fields that [Fields.String] has written.
func Parse(text string) *Fields {
	f := &Fields{byName: make(map[string]*Fields)}
	for path := range strings.SplitSeq(text, ",") {
		at := f
		for name := range strings.SplitSeq(path, ".") {
			if at.byName == nil {
				at.byName = make(map[string]*Fields)
			}
			if at.byName[name] == nil {
				at.byName[name] = &Fields{}
			}
			at = at.byName[name]
		}
	}
	return f
}

// String returns the paths of the fields, in their order and separated by commas. Equal fields
// have equal texts.
func (f *Fields) String() string {
	var paths []string
	f.appendPaths(&paths, "")
	slices.Sort(paths)
	return strings.Join(paths, ",")
}

func (f *Fields) appendPaths(paths *[]string, prefix string) {
	for name, child := range f.byName {
		if len(child.byName) == 0 {
			*paths = append(*paths, prefix+name)
		} else {
			child.appendPaths(paths, prefix+name+".")
		}
	}
}

// AppendObject appends the object to dst, reduced to f. The kind and the apiVersion stay. The
// metadata lose their managedFields. It returns an error if object is not JSON.
func (f *Fields) AppendObject(dst, object []byte) ([]byte, error) {
	s := jsonscan.New(object)
	isKept := func(name string) bool {
		return name == "metadata" || name == "kind" || name == "apiVersion" || f.byName[name] != nil
	}
	return appendMembers(dst, &s, isKept, func(dst []byte, name string) ([]byte, error) {
		switch name {
		case "metadata":
			return appendMembers(dst, &s, isKeptMetadata,
				func(dst []byte, _ string) ([]byte, error) { return appendRaw(dst, &s) })
		case "kind", "apiVersion":
			return appendRaw(dst, &s)
		default:
			return f.byName[name].appendValue(dst, &s)
		}
	})
}

// isKeptMetadata reports whether a projection keeps a member of the metadata.
func isKeptMetadata(name string) bool { return name != "managedFields" }

// appendValue appends the value at s, reduced to f.
func (f *Fields) appendValue(dst []byte, s *jsonscan.Scanner) ([]byte, error) {
	switch {
	case len(f.byName) > 0 && s.Next() == '{':
		isKept := func(name string) bool { return f.byName[name] != nil }
		return appendMembers(dst, s, isKept,
			func(dst []byte, name string) ([]byte, error) { return f.byName[name].appendValue(dst, s) })
	case len(f.byName) > 0 && s.Next() == '[':
		return f.appendElements(dst, s)
	default:
		return appendRaw(dst, s)
	}
}

// appendElements appends the list at s with each element reduced to f.
func (f *Fields) appendElements(dst []byte, s *jsonscan.Scanner) ([]byte, error) {
	dst = append(dst, '[')
	more, err := s.Enter('[')
	for n := 0; more && err == nil; n++ {
		if more, err = s.NextElement(']'); !more || err != nil {
			break
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		dst, err = f.appendValue(dst, s)
	}
	return append(dst, ']'), err
}

// appendMembers appends the object at s with the members for which isKept returns true. appendValue appends the value
// at s of a member. If the value at s is not an object, appendMembers appends it unchanged.
func appendMembers(
	dst []byte, s *jsonscan.Scanner, isKept func(name string) bool,
	appendValue func(dst []byte, name string) ([]byte, error),
) ([]byte, error) {
	if s.Next() != '{' {
		return appendRaw(dst, s)
	}
	dst = append(dst, '{')
	first := len(dst)
	err := s.Members(func(raw []byte) error {
		name := string(raw)
		if !isKept(name) {
			return s.Skip()
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = jsontext.AppendQuote(dst, name); err != nil {
			return err
		}
		dst, err = appendValue(append(dst, ':'), name)
		return err
	})
	return append(dst, '}'), err
}

func appendRaw(dst []byte, s *jsonscan.Scanner) ([]byte, error) {
	raw, err := s.Raw()
	return append(dst, raw...), err
}
