package crd_test

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// holder is a spec with one field of any type.
type holder[T any] struct {
	V T `json:"v"`
}

func (holder[T]) Definition() kube.Definition {
	return kube.Definition{Group: "holders.example.com", Version: "v1", Kind: "Holder"}
}

// held returns the definition of a resource whose spec has a field of type T.
func held[T any]() (*crd.CustomResourceDefinition, error) {
	return crd.Of[kube.CustomResource[holder[T], kube.None]]()
}

// schemaCase is a Go type and the schema that it gives, in YAML.
type schemaCase struct {
	name string
	of   func() (*crd.CustomResourceDefinition, error)
	want string
}

func schemaCases() []schemaCase {
	type phase string
	type (
		Inner struct {
			A string `json:"a"`
			B *int32 `json:"b,omitempty"`
		}
		Outer struct {
			Inner `json:",inline"`
			C     bool `json:"c,omitempty"`
		}
		Named struct {
			Inner `json:"inner"`
		}
		Hiding struct {
			Inner
			A int64 `json:"a"`
		}
	)
	return []schemaCase{
		{"string", held[string], `{type: string}`},
		{"named string", held[phase], `{type: string}`},
		{"bool", held[bool], `{type: boolean}`},
		{"int", held[int], `{type: integer, format: int64}`},
		{"int8", held[int8], `{type: integer, format: int32, minimum: -128, maximum: 127}`},
		{"int16", held[int16], `{type: integer, format: int32, minimum: -32768, maximum: 32767}`},
		{"int32", held[int32], `{type: integer, format: int32}`},
		{"uint8", held[uint8], `{type: integer, format: int32, minimum: 0, maximum: 255}`},
		{"uint16", held[uint16], `{type: integer, format: int32, minimum: 0, maximum: 65535}`},
		{"uint32", held[uint32], `{type: integer, format: int64, minimum: 0, maximum: 4294967295}`},
		{"uint64", held[uint64], `{type: integer, format: int64, minimum: 0}`},
		{"float32", held[float32], `{type: number, format: float}`},
		{"float64", held[float64], `{type: number, format: double}`},
		{"bytes", held[[]byte], `{type: string, format: byte}`},
		{"pointer to pointer", held[**string], `{type: string}`},
		{"slice", held[[]string], `{type: array, items: {type: string}}`},
		{"array", held[[2]bool], `{type: array, items: {type: boolean}, minItems: 2, maxItems: 2}`},
		{"map", held[map[phase]int32], `{type: object, additionalProperties: {type: integer, format: int32}}`},
		{"any", held[any], `{x-kubernetes-preserve-unknown-fields: true}`},
		{"map of any", held[map[string]any], `{type: object, additionalProperties: {x-kubernetes-preserve-unknown-fields: true}}`},
		{"time", held[time.Time], `{type: string, format: date-time}`},
		{"metav1.Time", held[metav1.Time], `{type: string, format: date-time}`},
		{"metav1.MicroTime", held[*metav1.MicroTime], `{type: string, format: date-time, pattern: '\.[0-9]{6}(Z|[+-][0-9]{2}:[0-9]{2})$'}`},
		{"metav1.Duration", held[metav1.Duration], `{type: string, pattern: '^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$'}`},
		{"IntOrString", held[intstr.IntOrString], `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], minimum: -2147483648, maximum: 2147483647}`},
		{"Quantity", held[resource.Quantity], `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}],
			pattern: '^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'}`},
		{"RawExtension", held[runtime.RawExtension], `{type: object, x-kubernetes-preserve-unknown-fields: true}`},
		{"RawMessage", held[json.RawMessage], `{x-kubernetes-preserve-unknown-fields: true}`},
		{"json.Number", held[json.Number], `{type: number}`},
		{"text marshaler", held[netip.Addr], `{type: string}`},
		{"self described", held[selfDescribed], `{type: string, format: ipv4}`},
		{"LabelSelector", held[metav1.LabelSelector], `
type: object
x-kubernetes-map-type: atomic
properties:
  matchLabels: {type: object, additionalProperties: {type: string}}
  matchExpressions:
    type: array
    items:
      type: object
      required: [key, operator]
      properties:
        key: {type: string}
        operator: {type: string}
        values: {type: array, items: {type: string}}`},
		{"type of items", held[struct {
			A []opaque            `json:"a" crd:"items.type=string,items.minLength=1"`
			B map[string][]opaque `json:"b,omitempty" crd:"values.items.type=integer"`
			C []recursive         `json:"c,omitempty" crd:"items.type=object"`
		}], `
type: object
properties:
  a: {type: array, items: {type: string, minLength: 1}}
  b: {type: object, additionalProperties: {type: array, items: {type: integer}}}
  c: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}`},
		{"default null", held[struct {
			A *string           `json:"a,omitempty" crd:"nullable,default=null"`
			B *int32            `json:"b,omitempty" crd:"default=null,nullable"`
			C string            `json:"c,omitempty" crd:"default=null"`
			D map[string]string `json:"d,omitempty" crd:"nullable,default=null"`
		}], `
type: object
properties:
  a: {type: string, nullable: true, default: null}
  b: {type: integer, format: int32, nullable: true, default: null}
  c: {type: string, default: "null"}
  d: {type: object, additionalProperties: {type: string}, nullable: true, default: null}`},
		{"embedded pointer", held[struct {
			*Inner
			C string `json:"c"`
		}], `
type: object
required: [c]
properties:
  a: {type: string}
  b: {type: integer, format: int32}
  c: {type: string}`},
		{"struct in an embedded pointer", held[struct{ *Outer }], `
type: object
properties:
  a: {type: string}
  b: {type: integer, format: int32}
  c: {type: boolean}`},
		{"rules of a named string", held[ruledName], `{type: string, x-kubernetes-validations: [{rule: "self != 'x'", message: no x}]}`},
		{"rules of a named list", held[ruledList], `
type: array
items: {type: string, x-kubernetes-validations: [{rule: "self != 'x'", message: no x}]}
x-kubernetes-validations: [{rule: size(self) < 3}]`},
		{"ObjectMeta within", held[struct {
			M metav1.ObjectMeta `json:"metadata,omitempty"`
		}], `
type: object
properties:
  metadata:
    type: object
    properties:
      name: {type: string}
      generateName: {type: string}
      namespace: {type: string}
      labels: {type: object, additionalProperties: {type: string}}
      annotations: {type: object, additionalProperties: {type: string}}
      finalizers: {type: array, items: {type: string}}`},
		{"nested", held[struct {
			Inner Inner    `json:"in"`
			skip  int      // not exported
			Skip2 chan int `json:"-"`
		}], `
type: object
required: [in]
properties:
  in: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer, format: int32}}}`},
		{"embedded", held[Outer], `{type: object, required: [a], properties: {a: {type: string}, b: {type: integer, format: int32}, c: {type: boolean}}}`},
		{"embedded with a name", held[Named], `
type: object
required: [inner]
properties:
  inner: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer, format: int32}}}`},
		{"embedded and hidden", held[Hiding], `{type: object, required: [a], properties: {a: {type: integer, format: int64}, b: {type: integer, format: int32}}}`},
		{"required", held[struct {
			Always    string            `json:"always"`
			Empty     string            `json:"empty,omitempty"`
			Zero      Inner             `json:"zero,omitzero"`
			Pointer   *string           `json:"pointer"`
			List      []string          `json:"list"`
			Map       map[string]string `json:"map"`
			Time      metav1.Time       `json:"time"`
			Insisted  *string           `json:"insisted" crd:"required"`
			Optional  string            `json:"optional" crd:"optional"`
			Defaulted string            `json:"defaulted" crd:"default=x"`
		}], `
type: object
required: [always, insisted]
properties:
  always: {type: string}
  empty: {type: string}
  zero: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer, format: int32}}}
  pointer: {type: string}
  list: {type: array, items: {type: string}}
  map: {type: object, additionalProperties: {type: string}}
  time: {type: string, format: date-time}
  insisted: {type: string}
  optional: {type: string}
  defaulted: {type: string, default: x}`},
		{"limits", held[struct {
			N int32             `json:"num,omitempty" crd:"minimum=0,maximum=10,exclusiveMinimum,multipleOf=5"`
			X float64           `json:"x,omitempty" crd:"exclusiveMaximum=1.5"`
			S string            `json:"s,omitempty" crd:"minLength=1,maxLength=63,pattern='^[a-z]{1,3}$'"`
			L []string          `json:"l,omitempty" crd:"minItems=1,maxItems=2,listType=set,items.minLength=2,items.enum=ab|cd"`
			M map[string]string `json:"m,omitempty" crd:"minProperties=1,maxProperties=2,values.maxLength=3,mapType=granular"`
			E string            `json:"e,omitempty" crd:"enum=|a|b"`
			I int               `json:"i,omitempty" crd:"enum=1|2,default=2"`
			U string            `json:"u,omitempty" crd:"format=uri,nullable"`
		}], `
type: object
properties:
  num: {type: integer, format: int32, minimum: 0, exclusiveMinimum: true, maximum: 10, multipleOf: 5}
  x: {type: number, format: double, maximum: 1.5, exclusiveMaximum: true}
  s: {type: string, minLength: 1, maxLength: 63, pattern: '^[a-z]{1,3}$'}
  l: {type: array, minItems: 1, maxItems: 2, x-kubernetes-list-type: set, items: {type: string, minLength: 2, enum: [ab, cd]}}
  m: {type: object, minProperties: 1, maxProperties: 2, x-kubernetes-map-type: granular, additionalProperties: {type: string, maxLength: 3}}
  e: {type: string, enum: ["", a, b]}
  i: {type: integer, format: int64, enum: [1, 2], default: 2}
  u: {type: string, format: uri, nullable: true}`},
		{"defaults", held[struct {
			B bool               `json:"b" crd:"default=true"`
			F float64            `json:"f" crd:"default=1.5"`
			L []int32            `json:"l" crd:"default='[1, 2]'"`
			O Inner              `json:"o" crd:"default='{\"a\": \"x\"}'"`
			Q resource.Quantity  `json:"q" crd:"default=100Mi"`
			P intstr.IntOrString `json:"p" crd:"default=80"`
			D metav1.Duration    `json:"d" crd:"default=5m"`
			S string             `json:"s" crd:"default='it''s, well'"`
			Z string             `json:"z" crd:"default="`
		}], `
type: object
properties:
  b: {type: boolean, default: true}
  f: {type: number, format: double, default: 1.5}
  l: {type: array, items: {type: integer, format: int32}, default: [1, 2]}
  o: {type: object, required: [a], properties: {a: {type: string}, b: {type: integer, format: int32}}, default: {a: x}}
  q: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], default: 100Mi,
    pattern: '^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'}
  p: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], minimum: -2147483648, maximum: 2147483647, default: 80}
  d: {type: string, default: 5m, pattern: '^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$'}
  s: {type: string, default: "it's, well"}
  z: {type: string, default: ""}`},
		{"list as a map", held[struct {
			L []struct {
				Name  string `json:"name"`
				Proto string `json:"proto" crd:"default=TCP"`
			} `json:"l" crd:"listType=map,listMapKey=name,listMapKey=proto"`
		}], `
type: object
properties:
  l:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name, proto]
    items: {type: object, required: [name], properties: {name: {type: string}, proto: {type: string, default: TCP}}}`},
		{"tag says the type", held[struct {
			R  *recursive `json:"r,omitempty" crd:"type=object"`
			C  opaque     `json:"c" crd:"type=string,format=byte"`
			N  int64      `json:"num,string" crd:"type=string"`
			A  opaque     `json:"a" crd:"type=any"`
			IS opaque     `json:"is" crd:"type=int-or-string"`
		}], `
type: object
required: [a, c, is, num]
properties:
  r: {type: object, x-kubernetes-preserve-unknown-fields: true}
  c: {type: string, format: byte}
  num: {type: string}
  a: {x-kubernetes-preserve-unknown-fields: true}
  is: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`},
		{"preserve and embed", held[struct {
			P Inner                `json:"p,omitempty" crd:"preserveUnknownFields"`
			E runtime.RawExtension `json:"e,omitempty" crd:"embeddedResource"`
		}], `
type: object
properties:
  p: {type: object, x-kubernetes-preserve-unknown-fields: true, required: [a], properties: {a: {type: string}, b: {type: integer, format: int32}}}
  e: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}`},
		{"rules", held[struct {
			N int32         `json:"num" crd:"rule='self in [1, 2, 3]',message='must be positive',rule='self < 5'"`
			R ruled         `json:"r"`
			E embedsRuled   `json:"e"`
			O overridesRule `json:"o"`
		}], `
type: object
required: [e, num, o, r]
properties:
  num: {type: integer, format: int32, x-kubernetes-validations: [{rule: 'self in [1, 2, 3]', message: must be positive}, {rule: self < 5}]}
  r: {type: object, required: [a], properties: {a: {type: string}}, x-kubernetes-validations: [{rule: self.a != 'x', message: no x}]}
  e: {type: object, required: [a], properties: {a: {type: string}}, x-kubernetes-validations: [{rule: self.a != 'x', message: no x}]}
  o: {type: object, required: [a], properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "true"}]}`},
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	for _, tc := range schemaCases() {
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

func TestConditions(t *testing.T) {
	t.Parallel()
	got, err := held[[]metav1.Condition]()
	if err != nil {
		t.Fatal(err)
	}
	list := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["v"]
	if list.ListType != "map" || !cmp.Equal(list.ListMapKeys, []string{"type"}) {
		t.Errorf("list type %q, keys %q", list.ListType, list.ListMapKeys)
	}
	if diff := cmp.Diff([]string{"lastTransitionTime", "message", "reason", "status", "type"}, list.Items.Required); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	if n := len(list.Items.Properties["status"].Enum); n != 3 {
		t.Errorf("status has %d values in its enum, want 3", n)
	}
}

// Lists of k8s.io/api were atomic, so that two field managers could not share one, and the protocol
// of a port had no default.
func TestListsOfKubernetes(t *testing.T) {
	t.Parallel()
	got, err := held[corev1.PodSpec]()
	if err != nil {
		t.Fatal(err)
	}
	pod := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["v"]
	containers := pod.Properties["containers"]
	ports := containers.Items.Properties["ports"]
	for _, tc := range []struct {
		name string
		list *crd.Schema
		keys []string
	}{
		{"containers", containers, []string{"name"}},
		{"ports", ports, []string{"containerPort", "protocol"}},
		{"imagePullSecrets", pod.Properties["imagePullSecrets"], []string{"name"}},
		{"command", containers.Items.Properties["command"], nil},
	} {
		if !cmp.Equal(tc.list.ListMapKeys, tc.keys) || (tc.list.ListType == "map") != (tc.keys != nil) {
			t.Errorf("%s: list type %q with the keys %q, want %q", tc.name, tc.list.ListType, tc.list.ListMapKeys, tc.keys)
		}
	}
	if got := string(ports.Items.Properties["protocol"].Default); got != `"TCP"` {
		t.Errorf("the default protocol is %s", got)
	}
	if got := pod.Properties["nodeSelector"].MapType; got != "atomic" {
		t.Errorf("the map type of nodeSelector is %q", got)
	}
	atomic, err := fromTags(t, map[string]string{".spec.template.spec.containers": "listType=atomic"})
	if err != nil {
		t.Fatal(err)
	}
	list := atomic.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"].Properties["spec"].Properties["containers"]
	if list.ListType != "atomic" || list.ListMapKeys != nil {
		t.Errorf("a tag by path does not overrule the list type: %q %q", list.ListType, list.ListMapKeys)
	}
}

// kubectl apply keeps the whole object in an annotation, which can have 256 KiB.
func TestPodSpecFitsIntoAnAnnotation(t *testing.T) {
	t.Parallel()
	got, err := held[corev1.PodTemplateSpec]()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of JSON", len(text))
	if len(text) > 256<<10-4096 {
		t.Errorf("%d bytes of JSON do not fit", len(text))
	}
}

// selfDescribed encodes itself, and has methods that describe the form.
type selfDescribed struct{ parts [4]byte }

func (selfDescribed) MarshalJSON() ([]byte, error) { return []byte(`"127.0.0.1"`), nil }
func (*selfDescribed) UnmarshalJSON([]byte) error  { return nil }
func (selfDescribed) OpenAPISchemaType() []string  { return []string{"string"} }
func (selfDescribed) OpenAPISchemaFormat() string  { return "ipv4" }

// opaque encodes itself in an unknown form.
type opaque struct{}

func (opaque) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

type recursive struct {
	Children []recursive `json:"children,omitempty"`
}

type ruled struct {
	A string `json:"a"`
}

func (ruled) Rules() []kube.Rule { return []kube.Rule{{Rule: "self.a != 'x'", Message: "no x"}} }

type ruledName string

func (ruledName) Rules() []kube.Rule {
	return []kube.Rule{{Rule: "self != 'x'", Message: "no x"}}
}

type ruledList []ruledName

func (ruledList) Rules() []kube.Rule { return []kube.Rule{{Rule: "size(self) < 3"}} }

type embedsRuled struct{ ruled }

type overridesRule struct{ ruled }

func (overridesRule) Rules() []kube.Rule { return []kube.Rule{{Rule: "true"}} }

func fromYAML(t *testing.T, text string) (v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func asAny(t *testing.T, from any) (v any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Keys that conditions have by themselves were listed twice when a tag named them too.
func TestConditionsWithTheirKeysInATag(t *testing.T) {
	t.Parallel()
	type tagged struct {
		C []metav1.Condition `json:"c,omitempty" crd:"listType=map,listMapKey=type"`
	}
	got, err := held[tagged]()
	if err != nil {
		t.Fatal(err)
	}
	list := got.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["v"].Properties["c"]
	if diff := cmp.Diff([]string{"type"}, list.ListMapKeys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
