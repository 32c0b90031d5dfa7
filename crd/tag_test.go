package crd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	corev1 "k8s.io/api/core/v1"
)

type taggedPort int32

func (taggedPort) CRDTag() string { return "minimum=1,maximum=65535" }

type taggedPhase string

func (*taggedPhase) CRDTag() string { return "enum=A|B,default=A" }

type taggedList []taggedPort

func (taggedList) CRDTag() string { return "maxItems=2,listType=set,items.multipleOf=2" }

// taggedAddress encodes itself.
type taggedAddress struct{ opaque }

func (taggedAddress) CRDTag() string { return "type=string,format=ipv4" }

// taggedPoint encodes itself, and its JSON has its fields.
type taggedPoint struct {
	opaque
	X int32 `json:"x"`
}

func (taggedPoint) CRDTag() string { return "type=struct,mapType=atomic" }

type TaggedBase struct {
	A string `json:"a,omitempty"`
}

func (TaggedBase) CRDTag() string { return "minProperties=1" }

type (
	embedsTag        struct{ TaggedBase }
	embedsTagPointer struct{ *TaggedBase }
	embedsInterface  struct {
		kube.Tagged `json:"tagged" crd:"type=any"`
		A           string `json:"a,omitempty"`
	}
	overridesTag struct{ TaggedBase }
)

func (overridesTag) CRDTag() string { return TaggedBase{}.CRDTag() + ",maxProperties=2" }

type taggedPrefix[T any] struct {
	V T `json:"v"`
}

func (taggedPrefix[T]) CRDTag() string { return "mapType=atomic" }

func tagCases() []schemaCase {
	return []schemaCase{
		{"tags of types", held[struct {
			A taggedPort            `json:"a"`
			B *taggedPort           `json:"b,omitempty" crd:"minimum=1024,exclusiveMaximum=65535"`
			C []taggedPort          `json:"c,omitempty" crd:"items.maximum=80"`
			D map[string]taggedPort `json:"d,omitempty"`
			E taggedPhase           `json:"e"`
			F taggedPhase           `json:"f" crd:"enum=A|B|C,default=C"`
			G taggedList            `json:"g,omitempty" crd:"minItems=1,items.minimum=2"`
			H taggedPrefix[string]  `json:"h"`
		}], `
type: object
required: [a, h]
properties:
  a: {type: integer, format: int32, minimum: 1, maximum: 65535}
  b: {type: integer, format: int32, minimum: 1024, maximum: 65535, exclusiveMaximum: true}
  c: {type: array, items: {type: integer, format: int32, minimum: 1, maximum: 80}}
  d: {type: object, additionalProperties: {type: integer, format: int32, minimum: 1, maximum: 65535}}
  e: {type: string, enum: [A, B], default: A}
  f: {type: string, enum: [A, B, C], default: C}
  g: {type: array, minItems: 1, maxItems: 2, x-kubernetes-list-type: set, items: {type: integer, format: int32, minimum: 2, maximum: 65535, multipleOf: 2}}
  h: {type: object, x-kubernetes-map-type: atomic, required: [v], properties: {v: {type: string}}}`},
		{"types that encode themselves", held[struct {
			A taggedAddress   `json:"a"`
			B []taggedAddress `json:"b,omitempty"`
			C taggedAddress   `json:"c" crd:"type=integer,minimum=1"`
			D taggedPoint     `json:"d"`
			E []describable   `json:"e,omitempty" crd:"items.type=struct"`
			F taggedPoint     `json:"f" crd:"type=object"`
		}], `
type: object
required: [a, c, d, f]
properties:
  a: {type: string, format: ipv4}
  b: {type: array, items: {type: string, format: ipv4}}
  c: {type: integer, minimum: 1}
  d: {type: object, x-kubernetes-map-type: atomic, required: [x], properties: {x: {type: integer, format: int32}}}
  e: {type: array, items: {type: object, required: [z], properties: {z: {type: string}}}}
  f: {type: object, x-kubernetes-preserve-unknown-fields: true}`},
		{"tags of embedded types", held[struct {
			A embedsTag        `json:"a,omitzero"`
			B embedsTagPointer `json:"b,omitzero"`
			C embedsInterface  `json:"c,omitzero"`
			D overridesTag     `json:"d,omitzero"`
			E TaggedBase       `json:"e,omitzero"`
		}], `
type: object
properties:
  a: {type: object, properties: {a: {type: string}}}
  b: {type: object, properties: {a: {type: string}}}
  c: {type: object, properties: {a: {type: string}, tagged: {x-kubernetes-preserve-unknown-fields: true}}}
  d: {type: object, minProperties: 1, maxProperties: 2, properties: {a: {type: string}}}
  e: {type: object, minProperties: 1, properties: {a: {type: string}}}`},
	}
}

type describable struct {
	opaque
	Z string `json:"z"`
}

// A method CRDTag holds for every value of its type, and tags of fields extend it. The method that
// a struct has only because it embeds a type does not count.
func TestTagsOfTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range tagCases() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.of()
			if err != nil {
				t.Fatal(err)
			}
			spec := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			if diff := cmp.Diff(fromYAML(t, tc.want), asAny(t, spec.Properties["v"])); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
}

type (
	wrongTag     struct{ A int32 }
	wrongTagKey  string
	fieldTagKey  string
	panickingTag string
	structTag    string
)

func (wrongTag) CRDTag() []string    { return nil }
func (wrongTagKey) CRDTag() string   { return "minLenght=1,maxLength=x" }
func (fieldTagKey) CRDTag() string   { return "required" }
func (panickingTag) CRDTag() string  { panic("no") }
func (structTag) CRDTag() string     { return "type=struct" }
func (contradicting) CRDTag() string { return "minimum=2,maximum=1" }

type contradicting int

func TestRefusedTagsOfTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		of   func() (*crd.CustomResourceDefinition, error)
		want []string
	}{
		{"signature", held[wrongTag], []string{"crd_test.wrongTag: its method CRDTag: it must be of type func() string"}},
		{"keys", held[[]wrongTagKey], []string{`crd_test.wrongTagKey: its method CRDTag: "minLenght=1,maxLength=x": minLenght=1: there is no such key: did you mean minLength?`, "maxLength=x"}},
		{"a key for fields", held[fieldTagKey], []string{"required is for a field"}},
		{"panic", held[panickingTag], []string{"crd_test.panickingTag: its method CRDTag: it must work on the zero value: panic: no"}},
		{"no struct", held[structTag], []string{`crd:"type=struct"`, "is for structs, and crd_test.structTag is none"}},
		{"contradiction", held[contradicting], []string{"crd_test.contradicting: its method CRDTag", "the minimum 2 is above the maximum 1"}},
	} {
		_, err := tc.of()
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error lacks %q:\n%v", tc.name, want, err)
			}
		}
		if err != nil && strings.Count(err.Error(), "\n") > 1 {
			t.Errorf("%s: several errors of one mistake:\n%v", tc.name, err)
		}
	}
}

type pathSpec struct {
	Template corev1.PodTemplateSpec `json:"template"`
	Port     taggedPort             `json:"port" crd:"minimum=3"`
	Ports    []struct {
		Name  string                  `json:"name"`
		Dot   map[string][]taggedPort `json:"a.b,omitempty"`
		Other describable             `json:"other,omitzero"`
	} `json:"ports,omitempty"`
	Text string `json:"text"`
}

func (pathSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Path"}
}

func fromTags(t *testing.T, tags map[string]string) (*crd.CustomResourceDefinition, error) {
	of := typeOf[kube.CustomResource[pathSpec, kube.None]](t)
	definition := *of.Definition
	definition.Tags = map[string]string{".spec.ports[*].other": "type=struct"}
	for path, tag := range tags {
		definition.Tags[path] = tag
	}
	of.Definition = &definition
	all, err := crd.From(of)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// The tag of a field overrules the tag for its path, which overrules the tag of its type.
func TestTagsByPath(t *testing.T) {
	t.Parallel()
	got, err := fromTags(t, map[string]string{
		".spec.template.spec.containers":          "required,minItems=1,items.minProperties=2",
		".spec.template.spec.containers[*].image": "required,minLength=1",
		".spec.template.spec.nodeName":            "column=Node,wide",
		".spec.port":                              "minimum=2,maximum=100",
		`.spec.ports[*].a\.b[*][*]`:               "maximum=8",
		".spec.text":                              "type=integer,enum=1|2,optional",
	})
	if err != nil {
		t.Fatal(err)
	}
	version := got.Spec.Versions[0]
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	for _, tc := range []struct {
		name string
		got  any
		want string
	}{
		{"port", spec.Properties["port"], "{type: integer, format: int32, minimum: 3, maximum: 100}"},
		{"text", spec.Properties["text"], "{type: integer, enum: [1, 2]}"},
		{"required", spec.Required, "[port, template]"},
		{"ports", spec.Properties["ports"], `{type: array, items: {type: object, required: [name], properties: {
			name: {type: string},
			a.b: {type: object, additionalProperties: {type: array, items: {type: integer, format: int32, minimum: 1, maximum: 8}}},
			other: {type: object, required: [z], properties: {z: {type: string}}}}}}`},
		{"required of a Pod", spec.Properties["template"].Properties["spec"].Required, "[containers]"},
		{"image", spec.Properties["template"].Properties["spec"].Properties["containers"].Items.Properties["image"], "{type: string, minLength: 1}"},
		{"least properties", spec.Properties["template"].Properties["spec"].Properties["containers"].Items.MinProperties, "2"},
		{"columns", version.Columns[0], "{name: Node, type: string, jsonPath: .spec.template.spec.nodeName, priority: 1}"},
	} {
		if diff := cmp.Diff(fromYAML(t, tc.want), asAny(t, tc.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestRefusedTagsByPath(t *testing.T) {
	t.Parallel()
	const definition = "the custom resource of crd_test.pathSpec: its Definition's Tags"
	for path, tc := range map[string]struct{ tag, want string }{
		".spec.tmplate.spec.nodeName":        {"minLength=1", definition + `[".spec.tmplate.spec.nodeName"]: "minLength=1": the path matches no field that a tag can describe; the nearest are .spec.template.spec.nodeName, `},
		"spec.text":                          {"minLength=1", "the nearest are .spec.text, "},
		".spec.ports.name":                   {"minLength=1", "the nearest are .spec.ports[*].name, "},
		".metadata.name":                     {"minLength=1", "matches no field"},
		".spec.port":                         {"minLength=1", definition + `[".spec.port"]: "minLength=1": minLength=1: it is for the types string`},
		".spec.ports[*].name":                {"default=x,required", "required: a field with a default is never missing"},
		".spec.template.spec.containers[*]":  {"optional", "optional is for a field"},
		".spec.text":                         {"enum=a,b", definition + `[".spec.text"]: "enum=a,b": enum=a: "b" is no key`},
		".spec.template.spec.containers[*].": {"x", "the nearest are .spec.template.spec.containers[*], "},
	} {
		_, err := fromTags(t, map[string]string{path: tc.tag})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error lacks %q:\n%v", path, tc.want, err)
		}
	}
}
