package crd_test

import (
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
)

// The error of a refused type names the type, the field and what to write.
func TestRefused(t *testing.T) {
	t.Parallel()
	type (
		Inner struct {
			A string `json:"a"`
		}
		items struct {
			Key  string   `json:"key,omitempty"`
			List []string `json:"list,omitempty"`
		}
	)
	for _, tc := range []struct {
		name string
		of   func() (*crd.CustomResourceDefinition, error)
		// want must all be in the error.
		want []string
	}{
		{"duration", held[time.Duration], []string{".V: time.Duration", "metav1.Duration"}},
		{"channel", held[chan int], []string{".V: ", "chan int", `json:"-"`}},
		{"function", held[func()], []string{"func()"}},
		{"complex", held[complex128], []string{"complex128"}},
		{"interface", held[interface{ String() string }], []string{"interface", "json.RawMessage"}},
		{"map key", held[map[int]string], []string{"map[int]string", "must be strings"}},
		{"opaque", held[opaque], []string{"crd_test.opaque", "OpenAPISchemaType", "type=string"}},
		{"recursive", held[recursive], []string{"crd_test.recursive.Children", "contains itself", "→ crd_test.recursive", `crd:"items.type=object"`}},
		{"mutual recursion", held[left], []string{"crd_test.left.Right → crd_test.right.Lefts → crd_test.left"}},
		{"no json tag", held[struct {
			ImageName string
		}], []string{".V.ImageName:", "`json:\"imageName\"`"}},
		{"json options only", held[struct {
			A string `json:",omitempty"`
		}], []string{".V.A:", "`json:\"a\"`"}},
		{"inline on a field", held[struct {
			In Inner `json:",inline"`
		}], []string{"inline", "embed the field"}},
		{"json string", held[struct {
			A int `json:"a,string"`
		}], []string{".V.A:", "option string", `crd:"type=string"`}},
		{"tag on an embedded struct", held[struct {
			Inner `crd:"nullable"`
		}], []string{".V.Inner:", "nullable", "embedded"}},
		{"acceptLoss with a value", held[struct {
			A string `json:"a" crd:"acceptLoss=enum"`
		}], []string{".V.A:", "acceptLoss=enum: it takes no value: write acceptLoss"}},
		{"acceptLoss for elements", held[struct {
			A []string `json:"a" crd:"items.acceptLoss"`
		}], []string{".V.A:", "acceptLoss is for the field itself"}},
		{"unknown key", held[struct {
			A string `json:"a" crd:"minLenght=1"`
		}], []string{".V.A:", `crd:"minLenght=1"`, "no such key: did you mean minLength?"}},
		{"unknown key of another tool", held[struct {
			A string `json:"a" crd:"MinLength=1"`
		}], []string{"did you mean minLength?"}},
		{"unknown key after a value", held[struct {
			A string `json:"a" crd:"enum=a,minLenght=1"`
		}], []string{"minLenght=1: there is no such key: did you mean minLength?"}},
		{"enum by commas", held[struct {
			A string `json:"a" crd:"enum=a,b"`
		}], []string{".V.A:", "as in enum=a|b"}},
		{"enum by semicolons", held[struct {
			A string `json:"a" crd:"enum=a;b"`
		}], []string{".V.A:", "as in enum=a|b"}},
		{"union by commas", held[struct {
			A Inner `json:"a" crd:"exactlyOneOf=a,b"`
		}], []string{".V.A:", `"b" is no key: separate the names by |, as in exactlyOneOf=a|b`}},
		{"union of one", held[struct {
			A Inner `json:"a" crd:"atMostOneOf=a"`
		}], []string{".V.A:", "at least two fields are missing, as in atMostOneOf=a|b"}},
		{"union of required and unknown fields", held[struct {
			A Inner `json:"a" crd:"atLeastOneOf=a|z"`
		}], []string{".V.A:", "the field a is required", `no field with the JSON name "z"; it has a`}},
		{"union of elements", held[struct {
			A []struct {
				A *string `json:"a,omitempty"`
				B string  `json:"b" crd:"default=x"`
				C string  `json:"0c,omitempty"`
			} `json:"a,omitempty" crd:"items.exactlyOneOf=a|b|a|0c"`
		}], []string{".V.A:", "a occurs twice", "the field b has a default", `cannot name the field "0c"`}},
		{"union of a list", held[struct {
			A []string `json:"a" crd:"exactlyOneOf=a|b"`
		}], []string{".V.A:", "it is for the types object"}},
		{"minimum on a string", held[struct {
			A string `json:"a" crd:"minimum=1"`
		}], []string{".V.A:", `crd:"minimum=1"`, "integer, number", "maxLength"}},
		{"no number", held[struct {
			A int `json:"a" crd:"minimum=low"`
		}], []string{".V.A:", "minimum=low", "must be a number"}},
		{"no count", held[struct {
			A string `json:"a" crd:"maxLength=-1"`
		}], []string{"maxLength=-1", "whole number"}},
		{"pattern", held[struct {
			A string `json:"a" crd:"pattern='['"`
		}], []string{"pattern=[", "error parsing regexp"}},
		{"format", held[struct {
			A string `json:"a" crd:"format=url"`
		}], []string{"format=url", "uri, uuid"}},
		{"enum", held[struct {
			A int `json:"a" crd:"enum=1|two"`
		}], []string{"enum=1|two", `"two" must be a whole number`}},
		{"enum twice", held[struct {
			A string `json:"a" crd:"enum=x|x"`
		}], []string{`"x" occurs twice`}},
		{"enum and nullable", held[struct {
			A *string `json:"a" crd:"enum=x,nullable"`
		}], []string{"takes no null where there is an enum"}},
		{"default type", held[struct {
			A bool `json:"a" crd:"default=yes"`
		}], []string{"default=yes", "true or false"}},
		{"default outside of enum", held[struct {
			A string `json:"a" crd:"enum=x|y,default=z"`
		}], []string{`the default "z" is not in the enum "x", "y"`}},
		{"default below minimum", held[struct {
			A int32 `json:"a" crd:"default=1,minimum=2"`
		}], []string{"the default 1", "minimum 2"}},
		{"default beyond int32", held[struct {
			A int32 `json:"a" crd:"default=3000000000"`
		}], []string{"range of int32"}},
		{"default against pattern", held[struct {
			A string `json:"a" crd:"default=A,pattern='^[a-z]$'"`
		}], []string{`"A" does not match`}},
		{"default against format", held[struct {
			A string `json:"a" crd:"default=nowhere,format=ipv4"`
		}], []string{`"nowhere" is not of the format ipv4`}},
		{"default of a format that only a server checks", held[struct {
			A string `json:"a" crd:"default=x,format=creditcard"`
		}], []string{"only a server can check"}},
		{"default of a struct", held[struct {
			A Inner `json:"a" crd:"default='{\"b\": 1}'"`
		}], []string{"lacks the required field a", "unknown field b"}},
		{"default of items", held[struct {
			A []string `json:"a" crd:"default='[\"x\", 1]'"`
		}], []string{"the default[1] 1 is not of type string"}},
		{"default and required", held[struct {
			A string `json:"a" crd:"required,default=x"`
		}], []string{"never missing"}},
		{"minimum above maximum", held[struct {
			A int `json:"a" crd:"minimum=2,maximum=1"`
		}], []string{"minimum 2 is above the maximum 1"}},
		{"maximum above int64", held[struct {
			A int64 `json:"a" crd:"maximum=9223372036854775807"`
		}], []string{"cannot hold 9223372036854775807", "the nearest value that works is 9223372036854774784"}},
		{"minimum of int64", held[struct {
			A int64 `json:"a" crd:"minimum=-9223372036854775808"`
		}], []string{"minimum=-9223372036854775808: the format int64 of the field cannot hold it", "works is -9223372036854774784"}},
		{"maximum that a float64 rounds", held[struct {
			A int64 `json:"a" crd:"maximum=9007199254740993"`
		}], []string{"stored as a float64, which cannot hold 9007199254740993", "works is 9007199254740992"}},
		{"maximum above int32", held[struct {
			A int32 `json:"a" crd:"maximum=4294967295"`
		}], []string{"maximum=4294967295: the format int32", "works is 2147483647"}},
		{"exclusive maximum above int32", held[struct {
			A int32 `json:"a" crd:"exclusiveMaximum=2147483648"`
		}], []string{"exclusiveMaximum=2147483648: the format int32", "works is 2147483647"}},
		{"minimum of an integer with a fraction", held[struct {
			A int32 `json:"a" crd:"minimum=0.5"`
			B int64 `json:"b" crd:"maximum=-0.5,exclusiveMaximum"`
		}], []string{"minimum=0.5: the format int32", "works is 1\n", "exclusiveMaximum=-0.5: the format int64", "works is -1"}},
		{"multiple above int32", held[struct {
			A int32 `json:"a" crd:"multipleOf=4294967296"`
		}], []string{"multipleOf=4294967296: the format int32", "works is 2147483647"}},
		{"maximum above float32", held[struct {
			A float32 `json:"a" crd:"maximum=1e300"`
		}], []string{"maximum=1e+300: the format float", "works is 3.4028234663852886e+38"}},
		{"maximum above float64", held[struct {
			A float64 `json:"a" crd:"minimum=-1e400"`
		}], []string{"cannot hold -1e400", "works is -1.7976931348623157e+308"}},
		{"minLength above maxLength", held[struct {
			A string `json:"a" crd:"minLength=2,maxLength=1"`
		}], []string{"minLength=2 is above maxLength=1"}},
		{"exclusive without a bound", held[struct {
			A int `json:"a" crd:"exclusiveMinimum"`
		}], []string{"write minimum=… before it"}},
		{"list map without keys", held[struct {
			A []items `json:"a" crd:"listType=map"`
		}], []string{"needs at least one listMapKey"}},
		{"list map of scalars", held[struct {
			A []string `json:"a" crd:"listType=map,listMapKey=x"`
		}], []string{"items that are structs"}},
		{"list map key unknown", held[struct {
			A []items `json:"a" crd:"listType=map,listMapKey=kee"`
		}], []string{"no such field", "key, list"}},
		{"list map key optional", held[struct {
			A []items `json:"a" crd:"listType=map,listMapKey=key"`
		}], []string{"required or have a default"}},
		{"list map key no scalar", held[struct {
			A []items `json:"a" crd:"listType=map,listMapKey=list"`
		}], []string{"must be a scalar"}},
		{"list map key without a map", held[struct {
			A []items `json:"a" crd:"listMapKey=key"`
		}], []string{"needs listType=map"}},
		{"set of structs", held[struct {
			A []items `json:"a" crd:"listType=set"`
		}], []string{"items.mapType=atomic"}},
		{"set of nullable items", held[struct {
			A []string `json:"a" crd:"listType=set,items.nullable"`
		}], []string{".V.A:", "items that are not nullable"}},
		{"nullable key", held[struct {
			A []struct {
				Key string `json:"key" crd:"nullable"`
			} `json:"a" crd:"listType=map,listMapKey=key"`
		}], []string{".V.A:", "listMapKey=key: a key must not be nullable"}},
		{"opaque items", held[struct {
			A []opaque `json:"a"`
		}], []string{"crd_test.opaque encodes itself", `tag the field crd:"items.type=string"`}},
		{"opaque values of lists", held[struct {
			A map[string][]opaque `json:"a"`
		}], []string{`tag the field crd:"values.items.type=string"`}},
		{"type of the items of a string", held[struct {
			A string `json:"a" crd:"items.type=string"`
		}], []string{"items. is for lists"}},
		{"type of items", held[struct {
			A []string `json:"a" crd:"items.type=text"`
		}], []string{`"text" is not one of string`}},
		{"unique items", held[struct {
			A []string `json:"a" crd:"uniqueItems"`
		}], []string{"listType=set"}},
		{"items of a string", held[struct {
			A string `json:"a" crd:"items.minLength=1"`
		}], []string{"items. is for lists"}},
		{"values of a struct", held[struct {
			A Inner `json:"a" crd:"values.minLength=1"`
		}], []string{"values. is for maps"}},
		{"scope", held[struct {
			A Inner `json:"a" crd:"item.minLength=1"`
		}], []string{"item.minLength", "items. or values."}},
		{"flag with a value", held[struct {
			A string `json:"a" crd:"nullable=true"`
		}], []string{"takes no value"}},
		{"message without a rule", held[struct {
			A string `json:"a" crd:"message=x"`
		}], []string{"belongs to a rule"}},
		{"empty rule", held[struct {
			A string `json:"a" crd:"rule="`
		}], []string{"must be a rule in CEL"}},
		{"open quote", held[struct {
			A string `json:"a" crd:"rule='x"`
		}], []string{"not closed"}},
		{"column of a list", held[struct {
			A []string `json:"a" crd:"column"`
		}], []string{"column needs a scalar"}},
		{"column in a list", held[[]struct {
			A string `json:"a" crd:"column"`
		}], []string{"within a list"}},
		{"selectable list", held[struct {
			A []string `json:"a" crd:"selectable"`
		}], []string{"selectable: the field must be a string, an integer or a boolean, and it is of type array"}},
		{"selectable in a list", held[[]struct {
			A string `json:"a" crd:"selectable"`
		}], []string{"selectable: ", "within a list"}},
		{"selectable name", held[struct {
			A string `json:"a.b" crd:"selectable"`
		}], []string{`selectable: the path .spec.v.a\.b`}},
		{"wide without a column", held[struct {
			A string `json:"a" crd:"wide"`
		}], []string{"belongs to column"}},
		{"type", held[struct {
			A string `json:"a" crd:"type=text"`
		}], []string{`"text" is not one of string`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := tc.of()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

// All mistakes are reported together, and each of them once.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	type wrong struct {
		A int    `json:"a" crd:"minLength=1,maxLength=x"`
		B string `json:"b" crd:"minimum=1"`
	}
	_, err := held[struct {
		X wrong   `json:"x"`
		Y []wrong `json:"y"`
		Z chan int
	}]()
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 {
		t.Errorf("%d problems, want 4:\n%v", len(lines), err)
	}
}

// A mistake has the file and the line of its field, where the Definition has its Source.
func TestMistakesHavePositions(t *testing.T) {
	t.Parallel()
	of := typeOf[kube.CustomResource[positionedSpec, kube.None]](t)
	definition := *of.Definition
	definition.Source = fstest.MapFS{"api/types.go": {Data: []byte(`package crd_test

type positionedSpec struct {
	// Size is wrong.
	Size int32
	Pair positionedPair[string]
	In   []struct {
		A string
	}
}

type positionedPair[T any] struct { First T }
`)}}
	definition.Columns = []kube.Column{{Name: "X", JSONPath: ".spec.x"}}
	of.Definition = &definition
	_, err := crd.From(of)
	if err == nil {
		t.Fatal("no error")
	}
	for i, want := range []string{
		"api/types.go:5: crd_test.positionedSpec.Size: the tag crd:",
		"api/types.go:12: crd_test.positionedPair[string].First: the tag crd:",
		"api/types.go:8: crd_test.positionedSpec.In.A: the tag crd:",
		"api/types.go:3: the custom resource of crd_test.positionedSpec: its Definition's column",
	} {
		lines := strings.Split(err.Error(), "\n")
		if len(lines) <= i || !strings.HasPrefix(lines[i], want) {
			t.Errorf("problem %d lacks %q:\n%v", i, want, err)
		}
	}
}

type positionedSpec struct {
	Size int32                  `json:"size" crd:"minimum=small"`
	Pair positionedPair[string] `json:"pair"`
	In   []struct {
		A string `json:"a" crd:"minimum=1"`
	} `json:"in"`
}

type positionedPair[T any] struct {
	First T `json:"first" crd:"minimum=1"`
}

func (positionedSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Positioned"}
}

func TestRefusedDefinitions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		kube.Definition
		want string
	}{
		{"group without a dot", kube.Definition{Group: "example", Version: "v1", Kind: "Thing"}, "a domain with a dot"},
		{"community group", kube.Definition{Group: "example.k8s.io", Version: "v1", Kind: "Thing"}, "Kubernetes community"},
		{"short name", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", ShortNames: []string{"T"}}, `short name "T"`},
		{"category", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", Categories: []string{"a b"}}, `category "a b"`},
		{"empty rule", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", Rules: []kube.Rule{{}}}, "a rule is empty"},
		{"column path", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing",
			Columns: []kube.Column{{Name: "X", JSONPath: ".spec.nope"}}}, ".spec.nope names no field"},
		{"column type", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing",
			Columns: []kube.Column{{Name: "X", JSONPath: ".spec.name", Type: "text"}}}, `"text" must be one of`},
		{"column twice", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing",
			Columns: []kube.Column{{Name: "Name", JSONPath: ".spec.name"}}}, "two columns are called Name"},
		{"label", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", Labels: map[string]string{"a": "b c"}}, `Definition's label a="b c" is not valid`},
		{"annotation", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", Annotations: map[string]string{"a b": ""}}, `Definition's annotation a b="" is not valid`},
		{"not served", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", NotServed: true}, "no version of things.example.com is served"},
		{"scale without a field", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing", Scale: &kube.ScalePaths{}}, ".spec.replicas names no field"},
		{"scale of a string", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing",
			Scale: &kube.ScalePaths{SpecReplicas: ".spec.name"}}, "must be of type integer"},
		{"scale selector", kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing",
			Scale: &kube.ScalePaths{Selector: ".status.n"}}, "must be of type string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			type thing = kube.CustomResource[thingSpec, thingStatus]
			of, err := kube.TypeOf[thing]()
			if err != nil {
				t.Fatal(err)
			}
			if of.Resource, err = tc.Resource(); err != nil {
				t.Fatal(err)
			}
			of.Definition = &tc.Definition
			_, err = crd.From(of)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error lacks %q: %v", tc.want, err)
			}
		})
	}
}

type thingSpec struct {
	Name string `json:"name" crd:"column"`
}

func (thingSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing"}
}

type thingStatus struct {
	N int32 `json:"n"`
}

type left struct {
	Right *right `json:"right"`
}

type right struct {
	Lefts map[string]left `json:"lefts"`
}

// linked has a type of the standard library, none of whose fields has a JSON name.
type linked struct {
	Link  url.URL              `json:"link"`
	Links map[string][]url.URL `json:"links"`
}

// mistagged has a mistake in a tag by path, which leads into a type of another module.
type mistagged struct {
	Resources corev1.ResourceRequirements `json:"resources"`
}

func (mistagged) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "Mistagged", Tags: map[string]string{".spec.resources.claims": "maxItms=4"},
	}
}

// Bug: url.URL led to eleven errors, and each advised a tag in a type that belongs to another module.
func TestTypeOfAnotherModule(t *testing.T) {
	t.Parallel()
	_, err := held[linked]()
	if err == nil {
		t.Fatal("url.URL has a schema")
	}
	for _, want := range []string{
		`crd_test.linked.Link: url.URL belongs to another module and has no schema: url.URL.Scheme: the field has no JSON name (10 more fields`,
		`tag crd_test.linked.Link crd:"type=object", which takes any fields, or type=string if its JSON is a string`,
		`tag crd_test.linked.Links crd:"values.items.type=object", which takes any fields, or values.items.type=string`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "url.URL belongs to"); n != 2 || strings.Contains(err.Error(), "write `json") {
		t.Errorf("there are %d errors, want one for each field, and no advice to change url.URL: %v", n, err)
	}
	_, err = crd.Of[kube.CustomResource[mistagged, kube.None]]()
	if err == nil || !strings.Contains(err.Error(), "did you mean maxItems?") || strings.Contains(err.Error(), "another module") {
		t.Errorf("the error of a tag by path is: %v", err)
	}
	type followed struct {
		Link  url.URL              `json:"link" crd:"type=object"`
		Links map[string][]url.URL `json:"links" crd:"values.items.type=object"`
	}
	if _, err := held[followed](); err != nil {
		t.Errorf("the advice does not help: %v", err)
	}
}
