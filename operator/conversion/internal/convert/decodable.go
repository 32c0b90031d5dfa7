package convert

import (
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// maxDecodableDepth bounds how deep a value is searched for what does not decode. Below, a value is taken or left as a
// whole.
const maxDecodableDepth = 64

// decodable finds what of an object decodes into a Go type. The other values are kept, because the difference between
// the object and the result of the functions has them.
type decodable struct {
	codec    codec
	object   *object
	resource wire.Resource
}

// view returns the JSON of the part of an object that decodes.
func (d *decodable) view(s *crd.Schema, content map[string]any) []byte {
	part := d.part(s, content, func(v any) map[string]any { return v.(map[string]any) }, 0)
	object, _ := part.(map[string]any)
	text := d.object.view(d.resource, object)
	if !d.decodes(text) {
		text = d.object.viewWithoutMetadata(d.resource, object)
	}
	return text
}

// part returns what of v decodes, or missing. wrap returns the content of an object in which v stands at its place. For
// example, where count is a number, {"size":1,"count":"x"} becomes {"size":1}.
func (d *decodable) part(s *crd.Schema, v any, wrap func(any) map[string]any, depth int) any {
	decodes := func(v any) bool { return d.decodes(d.object.viewWithoutMetadata(d.resource, wrap(v))) }
	if decodes(v) {
		return v
	}
	if depth == maxDecodableDepth {
		return jsontree.Missing{}
	}
	var rest any
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, name := range jsontree.SortedNames(v) {
			inner := func(v any) map[string]any { return wrap(map[string]any{name: v}) }
			jsontree.SetMember(object, name, d.part(jsontree.Property(s, name), v[name], inner, depth+1))
		}
		rest = object
	case []any:
		if s == nil || s.ListType != "map" {
			return jsontree.Missing{}
		}
		list := []any{}
		for _, each := range v {
			inner := func(v any) map[string]any { return wrap([]any{v}) }
			if item := d.part(s.Items, each, inner, depth+1); item != (jsontree.Missing{}) {
				list = append(list, item)
			}
		}
		rest = list
	default:
		return jsontree.Missing{}
	}
	if !decodes(rest) {
		return jsontree.Missing{}
	}
	return rest
}

// decodes reports whether the JSON of an object decodes.
func (d *decodable) decodes(text []byte) bool {
	_, err := d.codec.decode(text)
	return err == nil
}
