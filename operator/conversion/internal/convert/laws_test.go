package convert

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// The kinds of this file have free content, random schemas, and random functions that lose and change values.

type (
	freeSpec1 map[string]any
	freeSpec2 map[string]any
	freeSpec3 map[string]any
	free1     = kube.CustomResource[freeSpec1, map[string]any]
	free2     = kube.CustomResource[freeSpec2, map[string]any]
	free3     = kube.CustomResource[freeSpec3, map[string]any]
)

func (freeSpec1) Definition() kube.Definition { return freeDefinition("v1") }
func (freeSpec2) Definition() kube.Definition { return freeDefinition("v2") }
func (freeSpec3) Definition() kube.Definition { return freeDefinition("v3") }

func freeDefinition(version string) kube.Definition {
	return kube.Definition{Group: "laws.example.com", Version: version, Kind: "Free"}
}

// names are the names of the members of random objects.
var names = []string{"a", "b", "c", "d", "e", "f"}

// A randomWorld makes random schemas and values.
type randomWorld struct{ *rand.Rand }

func (r randomWorld) pick(texts ...string) string { return texts[r.IntN(len(texts))] }

// objectSchema returns the schema of an object with some members.
func (r randomWorld) objectSchema(depth int) *crd.Schema {
	s := &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{}}
	for _, name := range names[:1+r.IntN(len(names))] {
		s.Properties[name] = r.schema(depth - 1)
		if r.IntN(6) == 0 {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// schema returns a random schema.
func (r randomWorld) schema(depth int) *crd.Schema {
	if depth > 0 {
		switch r.IntN(6) {
		case 0, 1:
			return r.objectSchema(depth)
		case 2:
			return &crd.Schema{Type: "object", AdditionalProperties: r.schema(depth - 1)}
		case 3:
			return &crd.Schema{Type: "array", Items: r.schema(depth - 1)}
		case 4:
			items := r.objectSchema(depth)
			items.Properties["name"] = &crd.Schema{Type: "string"}
			items.Required = append(items.Required, "name")
			return &crd.Schema{Type: "array", ListType: "map", ListMapKeys: []string{"name"}, Items: items}
		}
	}
	s := &crd.Schema{Type: r.pick("string", "integer", "number", "boolean", "string", "integer")}
	switch {
	case r.IntN(6) == 0:
		s.Nullable = true
	case s.Type == "string" && r.IntN(4) == 0:
		s.Pattern = "^[a-z]*x*$"
	case s.Type == "integer" && r.IntN(4) == 0:
		s.Minimum = new(float64)
	}
	return s
}

// value returns a random value that fits s.
func (r randomWorld) value(s *crd.Schema) any {
	if s.Nullable && r.IntN(3) == 0 {
		return nil
	}
	switch s.Type {
	case "string":
		return r.pick("", "red", "green", "blue", "x")
	case "integer":
		return jsontree.Number(r.pick("0", "1", "7", "42", "9007199254740993"))
	case "number":
		return jsontree.Number(r.pick("0", "1.5", "1.50", "1e3", "0.1"))
	case "boolean":
		return r.IntN(2) == 0
	case "array":
		list := []any{}
		for _, name := range r.Perm(4)[:r.IntN(4)] {
			item := r.value(s.Items)
			if s.ListType == "map" {
				item.(map[string]any)["name"] = names[name]
			}
			list = append(list, item)
		}
		return list
	}
	object := map[string]any{}
	for name, property := range s.Properties {
		if r.IntN(4) > 0 || slices.Contains(s.Required, name) {
			object[name] = r.value(property)
		}
	}
	if s.AdditionalProperties != nil {
		for _, name := range names {
			if r.IntN(2) == 0 {
				object[name] = r.value(s.AdditionalProperties)
			}
		}
	}
	return object
}

// wholeSchema returns the schema of an object with spec and status.
func (r randomWorld) wholeSchema() *crd.Schema {
	return &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		"spec": r.objectSchema(3), "status": r.objectSchema(1),
	}}
}

// object returns a random object.
func (r randomWorld) object(version string, s *crd.Schema, isPart bool) []byte {
	metadata := map[string]any{"name": "a", "namespace": "shop", "uid": "u1", "annotations": map[string]any{"team": "blue"}}
	if isPart {
		delete(metadata, "uid")
	}
	object := map[string]any{"apiVersion": "laws.example.com/" + version, "kind": "Free", "metadata": metadata}
	for _, name := range []string{"spec", "status"} {
		if r.IntN(10) > 0 {
			object[name] = r.value(s.Properties[name])
		}
	}
	return jsontree.Append(nil, object)
}

// A lossy is a function that loses, changes and adds values. What it does with a member follows from the seed and the name of the member.
type lossy struct {
	seed uint64
	// isBack is true for the function back.
	isBack bool
}

func (l lossy) choice(path string, n uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(path))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, l.seed))
	return h.Sum64() >> 8 % n
}

// object converts a map.
func (l lossy) object(path string, from map[string]any) map[string]any {
	to := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(from)) {
		inner := path + "." + name
		if strings.HasPrefix(name, "r-") { // a renamed member
			inner = path + "." + name[2:]
		}
		switch choice := l.choice(inner, 8); {
		case choice == 0 && name != "name": // dropped
		case choice == 1 && name != "name" && !l.isBack:
			to["r-"+name] = l.value(inner, from[name])
		case choice == 1 && strings.HasPrefix(name, "r-") && l.isBack:
			to[name[2:]] = l.value(inner, from[name])
		default:
			to[name] = l.value(inner, from[name])
		}
	}
	if l.choice(path+"/default", 4) == 0 {
		if _, isThere := to["a"]; !isThere {
			to["a"] = "default"
		}
	}
	return to
}

func (l lossy) value(path string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return l.object(path, v)
	case []any:
		list := []any{}
		for i, each := range v {
			if l.choice(path+"/list", 4) == 0 && i > 0 {
				break // the first item only
			}
			list = append(list, l.value(path+"[]", each))
		}
		if l.choice(path+"/list", 4) == 1 {
			slices.Reverse(list)
		}
		return list
	case string:
		switch l.choice(path, 8) {
		case 2: // green is a kind of red
			return strings.ReplaceAll(v, "green", "red")
		case 3:
			if v == "" {
				return nil
			}
		}
	case float64:
		if l.choice(path, 8) == 4 {
			return float64(int(v) / 10 * 10)
		}
	case nil:
		if l.choice(path, 8) < 4 {
			return ""
		}
	}
	return v
}

func freeContent(object any) (spec, status map[string]any) {
	switch o := object.(type) {
	case *free1:
		return o.Spec, o.Status
	case *free2:
		return o.Spec, o.Status
	case *free3:
		return o.Spec, o.Status
	}
	panic("no free object")
}

// randomStep returns a random step between two types.
func randomStep[A, B any, PA kube.DefinedObjectOf[A], PB kube.DefinedObjectOf[B]](seed uint64) *Step {
	to, back := lossy{seed, false}, lossy{seed, true}
	convert := func(l lossy, from, to any) {
		fromSpec, fromStatus := freeContent(from)
		spec, status := l.object("spec", fromSpec), l.object("status", fromStatus)
		switch to := to.(type) {
		case *free1:
			to.Spec, to.Status = spec, status
		case *free2:
			to.Spec, to.Status = spec, status
		case *free3:
			to.Spec, to.Status = spec, status
		}
	}
	return NewStep[A, B, PA, PB](func(a *A, b *B) { convert(to, a, b) }, func(b *B, a *A) { convert(back, b, a) })
}

// randomKind returns the chain v1, v2, v3 with random functions. One of the versions is the storage version. home is the version with a
// strict schema. The results of random functions do not fit a strict schema, so the other versions accept all values.
func randomKind(t testing.TB, r randomWorld, home int) *Kind {
	t.Helper()
	var versions []Version
	storage := r.IntN(3)
	s := r.wholeSchema()
	for i := range 3 {
		version := fmt.Sprintf("v%d", i+1)
		resource, _ := kube.ResourceOf[free1]()
		resource.Version = version
		v := Version{Resource: resource, Schema: s, Served: true, Storage: i == storage}
		if i != home {
			v.Schema = loose(s)
		}
		versions = append(versions, v)
	}
	k, err := NewKind(versions, []*Step{randomStep[free1, free2](r.Uint64()), randomStep[free2, free3](r.Uint64())})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// loose returns a schema that has the lists with keys of s, and that accepts all values.
func loose(s *crd.Schema) *crd.Schema {
	if s == nil {
		return nil
	}
	l := &crd.Schema{PreserveUnknownFields: true, ListType: s.ListType, ListMapKeys: s.ListMapKeys, Items: loose(s.Items), AdditionalProperties: loose(s.AdditionalProperties)}
	for name, p := range s.Properties {
		if l.Properties == nil {
			l.Properties = make(map[string]*crd.Schema)
		}
		l.Properties[name] = loose(p)
	}
	return l
}

func mustConvert(t testing.TB, k *Kind, object []byte, target string) []byte {
	t.Helper()
	c, err := k.Convert(object, target)
	if err != nil {
		t.Fatal(err)
	}
	if c.IsIncomplete {
		t.Fatalf("incomplete: %+v of %s", c.Failures, object)
	}
	return c.Object
}

func TestLawsOfRandomKinds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		r := randomWorld{rand.New(rand.NewPCG(seed, 1))}
		at := r.IntN(3)
		k := randomKind(t, r, at)
		v := k.Versions()[at]
		home := v.Resource.Version
		h := r.object(home, v.Schema, r.IntN(4) == 0)
		for _, other := range k.Versions() {
			target := other.Resource.Version
			if target == home {
				continue
			}
			there := mustConvert(t, k, h, target)
			back := mustConvert(t, k, there, home)
			if string(back) != string(h) {
				t.Fatalf("seed %d: there and back is no identity\n%s: %s\n%s: %s\n%s: %s", seed, home, h, target, there, home, back)
			}
			if again := mustConvert(t, k, back, target); string(again) != string(there) {
				t.Fatalf("seed %d: there, back and there\n%s: %s\n%s: %s\n%s: %s", seed, home, h, target, there, target, again)
			}
		}
	}
}

// edit returns an object with one change of its spec. It keeps the annotations, as an update of what was read does.
func (r randomWorld) edit(object []byte, s *crd.Schema) []byte {
	o, _ := jsontree.ParseObject(object)
	o["spec"] = r.edited(s.Properties["spec"], jsontree.Member(o, "spec"))
	if o["spec"] == (jsontree.Missing{}) {
		delete(o, "spec")
	}
	return jsontree.Append(nil, o)
}

// edited returns v with one change.
func (r randomWorld) edited(s *crd.Schema, v any) any {
	if r.IntN(12) == 0 {
		return jsontree.Missing{}
	}
	switch v := v.(type) {
	case map[string]any:
		name := names[r.IntN(len(names))]
		if len(v) > 0 && r.IntN(4) > 0 {
			name = jsontree.SortedNames(v)[r.IntN(len(v))]
		}
		if name == "name" {
			return v
		}
		object := maps.Clone(v)
		value := r.edited(jsontree.Property(s, name), jsontree.Member(v, name))
		jsontree.SetMember(object, name, value)
		return object
	case []any:
		list := slices.Clone(v)
		switch r.IntN(4) {
		case 0:
			slices.Reverse(list)
		case 1:
			if s != nil && s.Items != nil {
				item := map[string]any{"name": r.pick("new", "b", "c"), "b": jsontree.Number("5")}
				if s.ListType != "map" {
					return append(list, "new")
				}
				if key, _ := jsontree.KeyOf(s, item); !slices.ContainsFunc(list, func(each any) bool {
					object, _ := each.(map[string]any)
					other, _ := jsontree.KeyOf(s, object)
					return key == other
				}) {
					return append(list, item)
				}
			}
		default:
			if len(list) == 0 {
				return list
			}
			at := r.IntN(len(list))
			var items *crd.Schema
			if s != nil {
				items = s.Items
			}
			item := r.edited(items, list[at])
			if item == (jsontree.Missing{}) {
				return slices.Delete(list, at, at+1)
			}
			list[at] = item
		}
		return list
	case string:
		return r.pick("red", "green", "blue", "yellow")
	case jsontree.Number:
		return jsontree.Number(r.pick("3", "4", "11", "12"))
	case bool:
		return !v
	}
	return r.pick("red", "green")
}

// Three versions are read and written by turns. A write that changes nothing stores the same bytes, whatever was written
// before.
func TestWritesWithoutNews(t *testing.T) {
	t.Parallel()
	for seed := range uint64(250) {
		r := randomWorld{rand.New(rand.NewPCG(seed, 2))}
		at := r.IntN(3)
		k := randomKind(t, r, at)
		// Nothing is left in a world without a strict schema.
		v := &k.versions[at]
		object := r.object(v.Resource.Version, v.Schema, r.IntN(4) == 0)
		for _, v := range k.versions {
			k.checks[v.Resource.Version], _ = newSchemaCheck(loose(v.Schema))
		}
		var history []string
		storage := ""
		for _, v := range k.versions {
			if v.Storage {
				storage = v.Resource.Version
			}
		}
		history = append(history, string(object))
		object = mustConvert(t, k, object, storage)
		for range 6 {
			for _, v := range k.versions {
				read := mustConvert(t, k, object, v.Resource.Version)
				if written := mustConvert(t, k, read, storage); string(written) != string(object) {
					t.Fatalf("seed %d: stored %s\nread as    %s\nwritten %s\nafter %s", seed, object, read, written, strings.Join(history, "\n"))
				}
			}
			v := k.versions[r.IntN(3)]
			edited := r.edit(mustConvert(t, k, object, v.Resource.Version), v.Schema)
			history = append(history, string(edited))
			object = mustConvert(t, k, edited, storage)
		}
	}
}

// An edit of one field changes at home what the function makes of it, and nothing else.
func TestEditsOfRandomKinds(t *testing.T) {
	t.Parallel()
	edits := 0
	for seed := range uint64(1500) {
		r := randomWorld{rand.New(rand.NewPCG(seed, 3))}
		at := r.IntN(3)
		k := randomKind(t, r, at)
		k.checks[k.versions[at].Resource.Version], _ = newSchemaCheck(loose(k.versions[at].Schema))
		v := k.versions[at]
		home := v.Resource.Version
		h := r.object(home, v.Schema, false)
		for _, other := range k.versions {
			path := k.stepsBetween(other.Resource.Version, home)
			if len(path) != 1 {
				continue
			}
			there := mustConvert(t, k, h, other.Resource.Version)
			edited := r.edit(there, other.Schema)
			got, _ := parseObject(mustConvert(t, k, edited, home))
			content := func(object []byte) map[string]any {
				o, err := parseObject(object)
				if err != nil {
					t.Fatal(err)
				}
				result, failed := k.run(path[0], o, o.content)
				if failed != nil {
					t.Fatal(failed.err)
				}
				return result
			}
			homeObject, _ := parseObject(h)
			before, after := content(there), content(edited)
			want, _ := afterEdit(v.Schema, homeObject.content, before, after).(map[string]any)
			if !areEqualButForOrder(v.Schema, want, got.content) {
				t.Fatalf("seed %d: home %s\nthere %s\nedited %s\nbefore %s\nafter %s\ngot  %s\nwant %s", seed, h, there, edited,
					jsontree.Append(nil, before), jsontree.Append(nil, after), jsontree.Append(nil, got.content), jsontree.Append(nil, want))
			}
			if !jsontree.Equal(before, after) {
				edits++
			}
		}
	}
	t.Logf("%d edits changed something at home", edits)
	if edits < 700 {
		t.Error("too few edits changed something at home")
	}
}
