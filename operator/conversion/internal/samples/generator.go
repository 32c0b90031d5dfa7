// Package samples makes objects of a version of a kind from its schema, for tests of conversions. The same seed gives
// the same objects.
package samples

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube/wire"
)

const (
	// maxFields bounds how many optional fields an object gets. The schema of a Pod has hundreds.
	maxFields = 24
	// maxDepth bounds how deep optional fields are.
	maxDepth = 12
	// maxItems bounds the items of a list that the schema does not ask for.
	maxItems = 3
)

// texts returns strings for fields whose schemas accept all strings. The first one is empty.
func texts() []string {
	return []string{
		"", "a", "red", "red-dark", "two words", "x.example.com", "0", "-1", "1.50", "true", "null", "Größe", "<a&b>",
		"a,b", "a/b:c", "@a", "\"", " a ",
	}
}

// Generator makes objects of one version. It is not safe for concurrent use.
type Generator struct {
	resource wire.Resource
	schema   *crd.Schema
	random   *rand.Rand
	// fields is how many further optional fields the object gets.
	fields int
	// hasZeros is true if values can be zero: null, false, 0, empty texts, lists and objects.
	hasZeros bool
}

// New returns a Generator of objects of r, whose whole objects have the schema s.
func New(r wire.Resource, s *crd.Schema, seed uint64) *Generator {
	return &Generator{resource: r, schema: s, random: rand.New(rand.NewPCG(seed, 1)), hasZeros: true}
}

// Whole returns the JSON of a random object, as an API server stores it. It may break rules in CEL,
// and patterns that only rare texts match. It fits the rest of the schema.
func (g *Generator) Whole() []byte {
	content := g.content()
	return g.encode(content, true)
}

// NonZero returns the JSON of an object as [Generator.Whole] does. Its values are not zero where the schema allows
// that. Most Go types can express such a value, and cannot express that a field is there with the value false.
func (g *Generator) NonZero() []byte {
	g.hasZeros = false
	defer func() { g.hasZeros = true }()
	return g.Whole()
}

// Partial returns the JSON of objects of which most fields are missing: without any field, with one field, and with a
// field that is null or empty. Each is returned as a stored object, and as a part of an object as API servers convert
// it for an apply. The fields are those of the object, and those of its objects spec and status.
func (g *Generator) Partial() (all [][]byte) {
	add := func(content map[string]any) {
		all = append(all, g.encode(content, true), g.encode(content, false))
	}
	add(map[string]any{})
	for _, name := range contentNames(g.schema) {
		property := g.schema.Properties[name]
		add(map[string]any{name: nil})
		add(map[string]any{name: g.singleValue(property)})
		if property.Type != "object" {
			continue
		}
		add(map[string]any{name: map[string]any{}})
		for _, inner := range slices.Sorted(maps.Keys(property.Properties)) {
			values := []any{nil, g.singleValue(property.Properties[inner])}
			switch property.Properties[inner].Type {
			case "array":
				values = append(values, []any{})
			case "object":
				values = append(values, map[string]any{})
			case "string":
				values = append(values, "")
			}
			for _, v := range values {
				add(map[string]any{name: map[string]any{inner: v}})
			}
		}
	}
	return all
}

// contentNames returns the names of the fields of an object that a conversion can change, sorted.
func contentNames(s *crd.Schema) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Properties)), func(name string) bool {
		return name == "apiVersion" || name == "kind" || name == "metadata"
	})
}

// content returns the fields of a random object.
func (g *Generator) content() map[string]any {
	g.fields = g.random.IntN(maxFields)
	object := make(map[string]any)
	for _, name := range contentNames(g.schema) {
		if slices.Contains(g.schema.Required, name) || g.random.IntN(8) > 0 {
			v := g.value(g.schema.Properties[name], 0)
			if g.hasZeros || !isZero(v) {
				object[name] = v
			}
		}
	}
	return object
}

// encode returns the JSON of an object. Only an object that is stored has a uid.
func (g *Generator) encode(content map[string]any, isStored bool) []byte {
	metadata := map[string]any{"name": "sample"}
	if !g.resource.ClusterScoped {
		metadata["namespace"] = "default"
	}
	if isStored {
		metadata["uid"] = "00000000-0000-4000-8000-000000000001"
		metadata["labels"] = map[string]any{"team": "blue"}
	}
	object := maps.Clone(content)
	object["apiVersion"], object["kind"], object["metadata"] = g.resource.GroupVersion().String(), g.resource.Kind,
		metadata
	text, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("a generated object has no JSON: %v", err)) // it holds texts, numbers, maps and lists only
	}
	return text
}

// singleValue returns a random value of a field that is the only one of its object.
func (g *Generator) singleValue(s *crd.Schema) any {
	g.fields = maxFields / 4
	return g.value(s, 1)
}

// value returns a random value of a field with the schema s.
func (g *Generator) value(s *crd.Schema, depth int) any {
	if g.hasZeros && s.Nullable && g.random.IntN(8) == 0 {
		return nil
	}
	if len(s.Enum) > 0 {
		return s.Enum[g.random.IntN(len(s.Enum))]
	}
	if s.EmbeddedResource {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	}
	switch s.Type {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.list(s, depth)
	case "boolean":
		return !g.hasZeros || g.random.IntN(2) == 0
	case "integer", "number":
		return g.number(s)
	case "string":
		return g.text(s)
	}
	if s.IntOrString && s.Pattern != "" {
		return g.text(s)
	}
	if g.random.IntN(2) == 0 {
		return 1 + g.random.IntN(100)
	}
	return g.text(s)
}

// object returns an object with the required fields and some of the others.
func (g *Generator) object(s *crd.Schema, depth int) map[string]any {
	object := make(map[string]any)
	if s.PreserveUnknownFields && len(s.Properties) == 0 {
		all := texts()
		object["free"] = all[g.random.IntN(len(all))]
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	for _, name := range names {
		isRequired := slices.Contains(s.Required, name)
		// About five optional fields are set, however many there are.
		if !isRequired && (g.fields == 0 || depth > maxDepth || g.random.IntN(max(2, len(names)/5)) > 0) {
			continue
		}
		if !isRequired {
			g.fields--
		}
		v := g.value(s.Properties[name], depth+1)
		if isRequired || g.hasZeros || !isZero(v) {
			object[name] = v
		}
	}
	if s.AdditionalProperties != nil {
		for i := range g.count(s.MinProperties, s.MaxProperties) {
			object[fmt.Sprintf("key%d", i)] = g.value(s.AdditionalProperties, depth+1)
		}
	}
	return object
}

// isZero reports whether v is empty or zero.
func isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// list returns a list. Items of a set, and keys of items, differ.
func (g *Generator) list(s *crd.Schema, depth int) []any {
	list := []any{}
	if s.Items == nil {
		return list
	}
	items := s.Items
	if s.ListType == "map" {
		keyed := *items // each item has its keys
		keyed.Required = append(slices.Clone(items.Required), s.ListMapKeys...)
		items = &keyed
	}
	known := make(map[string]bool)
	for range g.count(s.MinItems, s.MaxItems) {
		item := g.value(items, depth+1)
		if identity := identityOf(s, item); identity != "" {
			if known[identity] {
				continue
			}
			known[identity] = true
		}
		list = append(list, item)
	}
	return list
}

// identityOf returns a text that no other item of the list may have: the keys of the item, or the item of a set. It is
// empty for another list, whose items can be equal.
func identityOf(s *crd.Schema, item any) string {
	switch s.ListType {
	case "map":
		object, _ := item.(map[string]any)
		var identity []any
		for _, key := range s.ListMapKeys {
			identity = append(identity, object[key])
		}
		return fmt.Sprint(identity...)
	case "set":
		return fmt.Sprint(item)
	}
	return ""
}

// count returns a random number of items within bounds, and takes the items beyond the least number from g.fields.
func (g *Generator) count(least, most *int64) int {
	low := 0
	if least != nil {
		low = int(*least)
	}
	high := low + maxItems
	if most != nil {
		high = min(high, int(*most))
	}
	if g.fields == 0 {
		high = low
	}
	n := low + g.random.IntN(max(0, high-low)+1)
	g.fields = max(0, g.fields-(n-low))
	return n
}

// number returns a number within the bounds of s.
func (g *Generator) number(s *crd.Schema) any {
	low, high := -5.0, 100.0
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		low, high = *s.Minimum, *s.Maximum
	case s.Minimum != nil:
		low, high = *s.Minimum, *s.Minimum+100
	case s.Maximum != nil:
		low, high = *s.Maximum-100, *s.Maximum
	}
	step := 0.25
	if s.Type == "integer" {
		step = 1
	}
	if s.MultipleOf != nil && *s.MultipleOf > 0 {
		step = *s.MultipleOf
	}
	first, last := math.Ceil(low/step), math.Floor(high/step)
	if s.ExclusiveMinimum && first*step == low {
		first++
	}
	if s.ExclusiveMaximum && last*step == high {
		last--
	}
	if !g.hasZeros && first <= 0 && last > 0 {
		first = 1
	}
	n := (first + float64(g.random.Int64N(int64(min(max(0, last-first), 1<<40))+1))) * step
	if s.Type == "integer" {
		return int64(n)
	}
	return n
}

// text returns a string that fits s.
func (g *Generator) text(s *crd.Schema) string {
	if s.Pattern != "" {
		return matcher{g.random}.matching(s)
	}
	if all := textsOfFormat(s.Format); len(all) > 0 {
		return all[g.random.IntN(len(all))]
	}
	from := 0
	if !g.hasZeros {
		from = 1 // the first one is empty
	}
	all := texts()
	text := all[from+g.random.IntN(len(all)-from)]
	if s.MinLength != nil {
		text += strings.Repeat("x", max(0, int(*s.MinLength)-len([]rune(text))))
	}
	if runes := []rune(text); s.MaxLength != nil && int64(len(runes)) > *s.MaxLength {
		text = string(runes[:*s.MaxLength])
	}
	return text
}

// textsOfFormat returns strings of a format of OpenAPI, as Go types write them. It returns none for a format that it
// does not know.
func textsOfFormat(format string) []string {
	return map[string][]string{
		"byte": {"", "YQ==", "c2VjcmV0"}, "cidr": {"10.0.0.0/8", "fd00::/8"}, "date": {"2026-11-25"},
		"date-time": {"2026-11-25T10:00:00Z", "1999-01-01T00:00:00Z"}, "datetime": {"2026-11-25T10:00:00Z"},
		"duration": {"1h30m0s", "5s"}, "ipv4": {"10.0.0.1"}, "ipv6": {"fd00::1"}, "mac": {"00:00:5e:00:53:01"},
		"uri": {"https://example.com/a"}, "uuid": {"00000000-0000-4000-8000-000000000002"}, "email": {"a@example.com"},
		"hostname": {"a.example.com"},
	}[format]
}
