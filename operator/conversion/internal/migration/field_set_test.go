package migration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/yare-go/yare/internal/jsonscan/fieldset"
	"github.com/yare-go/yare/kube"
)

// plantSchema and plantType are one schema, for this package and for structured-merge-diff.
const (
	plantSchema = `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"size":{"type":"integer"},"name":{"type":"string"},
		"labels":{"type":"object","additionalProperties":{"type":"string"}},
		"selector":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
		"args":{"type":"array","items":{"type":"string"}},
		"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
		"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
			"items":{"type":"object","properties":{"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP"},"name":{"type":"string"}}}}}}}}`
	plantType = `types:
- name: plant
  map:
    fields:
    - {name: spec, type: {namedType: spec}}
- name: spec
  map:
    fields:
    - {name: size, type: {scalar: numeric}}
    - {name: name, type: {scalar: string}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: args, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: name, type: {scalar: string}}
`
)

// randomPlant returns a random object of the schema, with any of its fields.
func randomPlant(r *rand.Rand) map[string]any {
	spec := map[string]any{}
	texts := func() []any {
		var all []any
		for i := range 1 + r.IntN(3) {
			all = append(all, fmt.Sprint(i*10+r.IntN(10)))
		}
		return all
	}
	members := func() map[string]any {
		all := map[string]any{}
		for range r.IntN(3) {
			all[string(rune('a'+r.IntN(4)))] = fmt.Sprint(r.IntN(3))
		}
		return all
	}
	for name, value := range map[string]func() any{
		"size": func() any { return int64(r.IntN(3)) }, "name": func() any { return fmt.Sprint(r.IntN(3)) },
		"labels": func() any { return members() }, "selector": func() any { return members() },
		"args": func() any { return texts() }, "tags": func() any { return texts() },
		"ports": func() any {
			var all []any
			for i := range 1 + r.IntN(3) {
				port := map[string]any{"port": int64(i)}
				if r.IntN(2) == 0 {
					port["protocol"] = "UDP"
				}
				if r.IntN(2) == 0 {
					port["name"] = fmt.Sprint(r.IntN(3))
				}
				all = append(all, port)
			}
			return all
		},
	} {
		if r.IntN(2) == 0 {
			spec[name] = value()
		}
	}
	if len(spec) == 0 {
		return map[string]any{}
	}
	return map[string]any{"spec": spec}
}

// What a manager owns is what structured-merge-diff finds that it owns, and the part of the object that it owns is what it
// has applied.
func TestFieldSetsAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	parser, err := typed.NewParser(plantType)
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := kube.Unmarshal([]byte(plantSchema), &s); err != nil {
		t.Fatal(err)
	}
	if got := ownedFields(map[string]any{"spec": map[string]any{"tags": []any{}}}, nil, map[string]any{"spec": map[string]any{}}, nil, s); len(got) > 0 {
		t.Errorf("a set without items has the fields %v", got)
	}
	plant := parser.Type("plant")
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		part, other := randomPlant(r), randomPlant(r)
		typedPart, err := plant.FromUnstructured(part)
		if err != nil {
			t.Fatal(err)
		}
		set, err := typedPart.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		got := ownedFields(part, nil, part, nil, s)
		want := decodedSet(t, set)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: the fields of %v (-want +got):\n%s", seed, part, diff)
		}
		typedOther, err := plant.FromUnstructured(other)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := typedOther.Merge(typedPart)
		if err != nil {
			t.Fatal(err)
		}
		whole := normalized(t, merged.AsValue().Unstructured())
		extracted, _ := ownedPart(whole, want, s).(map[string]any)
		typedExtracted, err := plant.FromUnstructured(extracted)
		if err != nil {
			t.Fatal(err)
		}
		comparison, err := typedPart.Compare(typedExtracted)
		if err != nil {
			t.Fatal(err)
		}
		if !comparison.IsSame() {
			t.Fatalf("seed %d: of %v, the part should be %v, and is %v: %s", seed, whole, part, extracted, comparison)
		}
		// Two managers own the union.
		otherSet, err := typedOther.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		want.Add(decodedSet(t, otherSet))
		if diff := cmp.Diff(decodedSet(t, set.Union(otherSet)), want); diff != "" {
			t.Fatalf("seed %d: the union (-want +got):\n%s", seed, diff)
		}
	}
}

// decodedSet returns a set of structured-merge-diff as a set of this program.
func decodedSet(t *testing.T, set *fieldpath.Set) fieldset.Set {
	t.Helper()
	raw, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	fields, err := fieldset.Decode(metav1.NewFieldsV1(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// normalized returns a value as JSON brings it.
func normalized(t *testing.T, value any) map[string]any {
	t.Helper()
	raw, err := kube.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := kube.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// clockConverter converts between hour and minute in v1, and schedule in v2. As Go types do, it always sets paused.
type clockConverter struct{}

func (clockConverter) Convert(raw []byte, version string) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	object["apiVersion"] = "clocks.example.com/" + version
	spec, _ := object["spec"].(map[string]any)
	converted := map[string]any{"paused": false}
	for _, same := range []string{"paused", "tags"} {
		if value, ok := spec[same]; ok {
			converted[same] = value
		}
	}
	if version == "v2" {
		hour, hasHour := spec["hour"]
		minute, hasMinute := spec["minute"]
		if hasHour || hasMinute {
			if !hasHour {
				hour = "*"
			}
			if !hasMinute {
				minute = "*"
			}
			converted["schedule"] = fmt.Sprintf("%v %v", minute, hour)
		}
	} else if schedule, ok := spec["schedule"].(string); ok {
		var minute, hour int
		if _, err := fmt.Sscan(schedule, &minute, &hour); err != nil {
			return nil, err
		}
		converted["minute"], converted["hour"] = minute, hour
	}
	object["spec"] = converted
	return json.Marshal(object)
}

// Each manager owns in the new version what its fields become, and nothing that the converter sets by itself.
func TestFieldsOfManagersAreConverted(t *testing.T) {
	t.Parallel()
	d := new(liveDefinition)
	d.Spec.Group, d.Spec.Names.Kind = "clocks.example.com", "Clock"
	v1 := `{"properties":{"spec":{"properties":{"hour":{},"minute":{},"paused":{},"tags":{"x-kubernetes-list-type":"set","items":{}}}}}}`
	v2 := `{"properties":{"spec":{"properties":{"schedule":{},"paused":{},"tags":{"x-kubernetes-list-type":"set","items":{}}}}}}`
	for i, text := range []string{v1, v2} {
		v := definitionVersion{Name: fmt.Sprintf("v%d", i+1), Served: i == 1, Storage: i == 1}
		if err := kube.Unmarshal([]byte(text), &v.Schema.OpenAPIV3Schema); err != nil {
			t.Fatal(err)
		}
		d.Spec.Versions = append(d.Spec.Versions, v)
	}
	c := managedFieldsConversion{definition: d, converter: NewFieldConverter(clockConverter{}), version: "v2", object: []byte(
		`{"apiVersion":"clocks.example.com/v2","kind":"Clock","metadata":{"name":"a"},"spec":{"schedule":"30 3","paused":true,"tags":["x","y"]}}`)}
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", APIVersion: "clocks.example.com/" + version, FieldsV1: &metav1.FieldsV1{}}
		e.FieldsV1.SetRawBytes([]byte(fields))
		return e
	}
	got, err := c.convert([]metav1.ManagedFieldsEntry{
		entry("hours", "v1", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:hour":{},"f:tags":{"v:\"x\"":{}}}}`),
		entry("minutes", "v1", `{"f:spec":{"f:minute":{},"f:paused":{}}}`),
		entry("both", "v2", `{"f:spec":{"f:tags":{"v:\"y\"":{}}}}`),
		entry("both", "v1", `{"f:spec":{"f:hour":{}}}`),
		entry("nothing", "v1", `{"f:spec":{"f:gone":{}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{
		entry("hours", "v2", `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:schedule":{},"f:tags":{"v:\"x\"":{}}}}`),
		entry("minutes", "v2", `{"f:spec":{"f:paused":{},"f:schedule":{}}}`),
		entry("both", "v2", `{"f:spec":{"f:schedule":{},"f:tags":{"v:\"y\"":{}}}}`),
	}
	text := func(entries []metav1.ManagedFieldsEntry) (lines []string) {
		for _, e := range entries {
			lines = append(lines, e.Manager+" "+e.APIVersion+" "+string(e.FieldsV1.GetRawBytes()))
		}
		return lines
	}
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("the entries (-want +got):\n%s", diff)
	}
}
