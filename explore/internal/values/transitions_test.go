package values_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/kube"
)

// The declared state of the examples, and what becomes of it.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		example string
		changes []string
		fields  []values.Field
	}{
		{"webapp", []string{
			`spec.image: sample -> other {"spec":{"image":"nginx:1.28"}}`,
			`spec.replicas: sample -> minimum {"spec":{"replicas":0}}`,
			`spec.replicas: sample -> other {"spec":{"replicas":2}}`,
		}, []values.Field{
			{Path: "spec.image", Values: []string{"other"}},
			{Path: "spec.replicas", Values: []string{"minimum", "other"}},
		}},
		{"echo", []string{
			`spec.replicas: sample -> minimum {"spec":{"replicas":0}}`,
			`spec.replicas: sample -> maximum {"spec":{"replicas":3}}`,
			`spec.replicas: sample -> other {"spec":{"replicas":1}}`,
		}, []values.Field{
			{Path: "spec.replicas", Values: []string{"minimum", "maximum", "other"}},
		}},
		{"member", []string{
			`spec.memberOf: sample -> absent {"spec":{"memberOf":null}}`,
			`spec.memberOf: sample -> other {"spec":{"memberOf":"bluex"}}`,
		}, []values.Field{
			{Path: "spec.memberOf", Values: []string{"absent", "other"}},
		}},
		{"book", []string{
			`spec.authors: sample -> absent {"spec":{"authors":null}}`,
			`spec.authors: sample -> empty {"spec":{"authors":[]}}`,
			`spec.authors: sample -> more {"spec":{"authors":["Herman Melville","Herman Melvillex"]}}`,
			`spec.title: sample -> other {"spec":{"title":"Moby Dickx"}}`,
		}, []values.Field{
			{Path: "spec.authors", Values: []string{"absent", "empty", "more"}},
			{Path: "spec.title", Values: []string{"other"}},
		}},
	} {
		t.Run(test.example, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("..", "..", "..", "examples", test.example)
			definition := readYAML(t, filepath.Join(folder, "crd.yaml"))
			var sample map[string]any
			if err := json.Unmarshal(readYAML(t, filepath.Join(folder, "sample.yaml")), &sample); err != nil {
				t.Fatal(err)
			}
			transitions, fields := find(t, parse(t, definition), sample, values.Options{})
			if diff := cmp.Diff(test.changes, fromSample(t, sample, transitions)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.fields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// The name of a step says what the step changes, also if the transition does not begin with the sample.
func TestStepNames(t *testing.T) {
	t.Parallel()
	both := values.Transition{Field: "spec.notes", From: "empty", Value: "more", Objects: make([]map[string]any, 2)}
	second := values.Transition{Field: "spec.notes", From: "sample", Value: "more", Objects: make([]map[string]any, 1)}
	got := []string{both.StepName(0), both.StepName(1), second.StepName(0)}
	want := []string{"spec.notes: sample -> empty", "spec.notes: empty -> more", "spec.notes: sample -> more"}
	if !slices.Equal(got, want) {
		t.Errorf("the steps are %q, want %q", got, want)
	}
}

// ShopSpec has a field of each kind.
type ShopSpec struct {
	Size     int32               `json:"size,omitempty" crd:"minimum=1,maximum=9,default=3"`
	Port     int32               `json:"port,omitempty" crd:"minimum=1024"`
	Ratio    float64             `json:"ratio,omitempty" crd:"minimum=0,maximum=1"`
	Mode     string              `json:"mode,omitempty" crd:"enum=Fast|Safe|Idle,default=Safe"`
	Open     bool                `json:"open,omitempty"`
	Storage  *resource.Quantity  `json:"storage,omitempty"`
	Surge    *intstr.IntOrString `json:"surge,omitempty"`
	Labels   map[string]string   `json:"labels,omitempty"`
	Counts   []int32             `json:"counts,omitempty" crd:"items.minimum=0"`
	Shelves  []Shelf             `json:"shelves,omitempty"`
	Backup   *Backup             `json:"backup,omitempty"`
	Sign     *Sign               `json:"sign,omitempty"`
	Anything json.RawMessage     `json:"anything,omitempty"`
}

// Shelf is an item of a list.
type Shelf struct {
	Name string `json:"name"`
	Rows int32  `json:"rows" crd:"minimum=0"`
}

// Backup can be made of its schema alone.
type Backup struct {
	Keep   int32 `json:"keep" crd:"minimum=1"`
	Verify bool  `json:"verify,omitempty"`
}

// Sign cannot be made of its schema alone.
type Sign struct {
	Text string `json:"text"`
	Lit  bool   `json:"lit,omitempty"`
}

// Definition returns the definition of shops.
func (ShopSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Shop"}
}

// Shop is the whole resource.
type Shop = kube.CustomResource[ShopSpec, kube.None]

// Each kind of field has the values that its schema allows.
func TestFields(t *testing.T) {
	t.Parallel()
	schema := schemaOf[Shop](t)
	for _, test := range []struct {
		name    string
		spec    string
		field   string // and the fields below it
		options values.Options
		want    []string
		why     string // of the first field
	}{
		{"a default is the absent field", `{}`, "spec.size", values.Options{}, []string{
			`spec.size: sample -> default {"spec":{"size":3}}`,
			`spec.size: sample -> minimum {"spec":{"size":1}}`,
			`spec.size: sample -> maximum {"spec":{"size":9}}`,
			`spec.size: sample -> other {"spec":{"size":2}}`,
		}, ""},
		{"without a maximum, above 3", `{"port":8080}`, "spec.port", values.Options{}, []string{
			`spec.port: sample -> absent {"spec":{"port":null}}`,
			`spec.port: sample -> minimum {"spec":{"port":1024}}`,
			`spec.port: sample -> maximum {"spec":{"port":1025}}`,
		}, ""},
		{"fractions", `{"ratio":0.5}`, "spec.ratio", values.Options{}, []string{
			`spec.ratio: sample -> absent {"spec":{"ratio":null}}`,
			`spec.ratio: sample -> minimum {"spec":{"ratio":0}}`,
			`spec.ratio: sample -> maximum {"spec":{"ratio":1}}`,
			`spec.ratio: sample -> other {"spec":{"ratio":0.75}}`,
		}, ""},
		{"each value of an enum", `{"mode":"Idle"}`, "spec.mode", values.Options{}, []string{
			`spec.mode: sample -> default {"spec":{"mode":"Safe"}}`,
			`spec.mode: sample -> enum:Fast {"spec":{"mode":"Fast"}}`,
		}, ""},
		{"truth", `{"open":true}`, "spec.open", values.Options{}, []string{
			`spec.open: sample -> absent {"spec":{"open":null}}`,
			`spec.open: sample -> false {"spec":{"open":false}}`,
		}, ""},
		{"half and twice a quantity", `{"storage":"1Gi"}`, "spec.storage", values.Options{}, []string{
			`spec.storage: sample -> absent {"spec":{"storage":null}}`,
			`spec.storage: sample -> half {"spec":{"storage":"512Mi"}}`,
			`spec.storage: sample -> double {"spec":{"storage":"2Gi"}}`,
		}, ""},
		{"a quantity that is a number", `{"storage":1}`, "spec.storage", values.Options{}, []string{
			`spec.storage: sample -> absent {"spec":{"storage":null}}`,
			`spec.storage: sample -> half {"spec":{"storage":"500m"}}`,
			`spec.storage: sample -> double {"spec":{"storage":"2"}}`,
		}, ""},
		{"a quantity with a fraction", `{"storage":"1500m"}`, "spec.storage", values.Options{}, []string{
			`spec.storage: sample -> absent {"spec":{"storage":null}}`,
			`spec.storage: sample -> half {"spec":{"storage":"750m"}}`,
			`spec.storage: sample -> double {"spec":{"storage":"3"}}`,
		}, ""},
		{"no quantity", `{}`, "spec.storage", values.Options{}, nil, "quantity that the sample does not have: needs Values"},
		{"an integer or a string", `{"surge":1}`, "spec.surge", values.Options{}, []string{
			`spec.surge: sample -> absent {"spec":{"surge":null}}`,
			`spec.surge: sample -> other {"spec":{"surge":2}}`,
		}, ""},
		{"a map", `{"labels":{"a":"1","b":"2"}}`, "spec.labels", values.Options{}, []string{
			`spec.labels: sample -> absent {"spec":{"labels":null}}`,
			`spec.labels: sample -> empty {"spec":{"labels":{"a":null,"b":null}}}`,
			`spec.labels: sample -> fewer {"spec":{"labels":{"b":null}}}`,
			`spec.labels: sample -> more {"spec":{"labels":{"explored":"1"}}}`,
		}, ""},
		{"a list of numbers", `{"counts":[0,5]}`, "spec.counts", values.Options{}, []string{
			`spec.counts: sample -> absent {"spec":{"counts":null}}`,
			`spec.counts: sample -> empty {"spec":{"counts":[]}}`,
			`spec.counts: sample -> fewer {"spec":{"counts":[0]}}`,
			`spec.counts: sample -> more {"spec":{"counts":[0,5,3]}}`,
		}, ""},
		{"the first item of a list", `{"shelves":[{"name":"a","rows":3}]}`, "spec.shelves", values.Options{}, []string{
			`spec.shelves: sample -> absent {"spec":{"shelves":null}}`,
			`spec.shelves: sample -> empty {"spec":{"shelves":[]}}`,
			`spec.shelves[0].name: sample -> other {"spec":{"shelves":[{"name":"ax","rows":3}]}}`,
			`spec.shelves[0].rows: sample -> minimum {"spec":{"shelves":[{"name":"a","rows":0}]}}`,
			`spec.shelves[0].rows: sample -> other {"spec":{"shelves":[{"name":"a","rows":2}]}}`,
		}, ""},
		{"an object that the sample does not have", `{}`, "spec.backup", values.Options{}, []string{
			`spec.backup: sample -> present {"spec":{"backup":{"keep":1}}}`,
			`spec.backup.keep: sample -> maximum {"spec":{"backup":{"keep":3}}}`,
			`spec.backup.keep: sample -> other {"spec":{"backup":{"keep":2}}}`,
			`spec.backup.verify: sample -> true {"spec":{"backup":{"keep":1,"verify":true}}}`,
			`spec.backup.verify: sample -> false {"spec":{"backup":{"keep":1,"verify":false}}}`,
		}, ""},
		{"an object that the sample has", `{"sign":{"text":"hi"}}`, "spec.sign", values.Options{}, []string{
			`spec.sign: sample -> absent {"spec":{"sign":null}}`,
			`spec.sign.lit: sample -> true {"spec":{"sign":{"lit":true}}}`,
			`spec.sign.lit: sample -> false {"spec":{"sign":{"lit":false}}}`,
			`spec.sign.text: sample -> other {"spec":{"sign":{"text":"hix"}}}`,
		}, ""},
		{"an object that only its author can make", `{}`, "spec.sign", values.Options{}, nil, "text: opaque string: needs Values"},
		{"a second sample", `{"sign":{"text":"hi"}}`, "spec.sign.text", values.Options{
			Second: map[string]any{"spec": map[string]any{"sign": map[string]any{"text": "bye"}, "size": 7}},
		}, []string{
			`spec.sign.text: sample -> second sample {"spec":{"sign":{"text":"bye"}}}`,
			`spec.sign.text: sample -> other {"spec":{"sign":{"text":"hix"}}}`,
		}, ""},
		{"a value of any type", `{"anything":[1]}`, "spec.anything", values.Options{}, []string{
			`spec.anything: sample -> absent {"spec":{"anything":null}}`,
		}, "value of any type: needs Values"},
		{"given values", `{"size":4}`, "spec.size", values.Options{Values: map[string][]any{"spec.size": {5, nil, 4}}}, []string{
			`spec.size: sample -> value:5 {"spec":{"size":5}}`,
			`spec.size: sample -> absent {"spec":{"size":null}}`,
		}, ""},
		{"a given object", `{}`, "spec.sign", values.Options{Values: map[string][]any{"spec.sign": {map[string]any{"text": "hi"}}}}, []string{
			`spec.sign: sample -> value:{"text":"hi"} {"spec":{"sign":{"text":"hi"}}}`,
		}, ""},
		{"a field that keeps its value", `{"shelves":[{"name":"a","rows":3}]}`, "spec.shelves", values.Options{Values: map[string][]any{"spec.shelves": nil}}, nil, "the options keep the value of the sample"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			object := sample(t, test.spec)
			transitions, fields := find(t, schema, object, test.options)
			var got []string
			for _, change := range fromSample(t, object, transitions) {
				if strings.HasPrefix(change, test.field) {
					got = append(got, change)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			i := slices.IndexFunc(fields, func(f values.Field) bool { return strings.HasPrefix(f.Path, test.field) })
			if i < 0 {
				t.Fatalf("the field is not reported: %+v", fields)
			}
			if fields[i].Reason != test.why {
				t.Errorf("%s: the reason is %q, want %q", fields[i].Path, fields[i].Reason, test.why)
			}
		})
	}
}

// The objects of a transition are the states that their names say.
func TestObjectsOfTransitions(t *testing.T) {
	t.Parallel()
	sample := sample(t, `{"size":4,"mode":"Fast","open":true,"storage":"1Gi","labels":{"a":"1","b":"2"},
		"counts":[0,5],"shelves":[{"name":"a","rows":3},{"name":"b","rows":1}],"sign":{"text":"hi"}}`)
	before := marshal(t, sample)
	transitions, _ := find(t, schemaOf[Shop](t), sample, values.Options{Pairs: 50, Seed: 1})
	ends := map[string]string{} // the JSON of a value, by its name
	pairs, ordered := 0, 0
	for _, change := range transitions {
		from, to := sample, change.Objects[len(change.Objects)-1]
		if len(change.Objects) > 1 {
			from = change.Objects[0]
		}
		if isFromSample := marshal(t, from) == before; isFromSample != (change.From == "sample") {
			t.Errorf("%s begins with the sample: %t", change, isFromSample)
		}
		if marshal(t, from) == marshal(t, to) {
			t.Errorf("%s changes nothing", change)
		}
		for name, object := range map[string]map[string]any{change.From: from, change.Value: to} {
			name = change.Field + " " + name
			if end, known := ends[name]; known && end != marshal(t, object) {
				t.Errorf("%s is\n%s and\n%s", name, end, marshal(t, object))
			}
			ends[name] = marshal(t, object)
		}
		if change.From != "sample" {
			ordered++
		}
		if strings.Contains(change.Field, ", ") {
			pairs++
		}
	}
	if marshal(t, sample) != before {
		t.Error("the sample was changed")
	}
	if pairs != 50 {
		t.Errorf("%d pairs of fields, want 50", pairs)
	}
	if ordered == 0 {
		t.Error("no ordered pairs of values")
	}
}

// A seed chooses the pairs of fields, and always the same ones.
func TestSeed(t *testing.T) {
	t.Parallel()
	schema, sample := schemaOf[Shop](t), sample(t, `{"size":4,"mode":"Fast","open":true}`)
	pairs := func(seed uint64) string {
		transitions, _ := find(t, schema, sample, values.Options{Pairs: 10, Seed: seed})
		return marshal(t, transitions)
	}
	first, again, other := pairs(1), pairs(1), pairs(2)
	if first != again {
		t.Error("the same seed chose other pairs")
	}
	if first == other {
		t.Error("another seed chose the same pairs")
	}
}

// TaskSpec embeds a kind of Kubernetes, whose schema has hundreds of fields.
type TaskSpec struct {
	Template batchv1.JobTemplateSpec `json:"template"`
	Workers  int32                   `json:"workers" crd:"minimum=0"`
}

// Definition returns the definition of tasks.
func (TaskSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Task"}
}

// Task is the whole resource.
type Task = kube.CustomResource[TaskSpec, kube.None]

// The fields of the author come before the fields of an embedded kind, which are not thousands.
func TestEmbeddedKind(t *testing.T) {
	t.Parallel()
	sample := sample(t, `{"workers":1,"template":{"spec":{"template":{"spec":{
		"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}}}}`)
	transitions, fields := find(t, schemaOf[Task](t), sample, values.Options{})
	if len(transitions) == 0 || transitions[0].Field != "spec.workers" {
		t.Errorf("the first transition is %v", transitions[:min(1, len(transitions))])
	}
	if len(fields) < 50 || len(fields) > 1000 {
		t.Errorf("%d fields", len(fields))
	}
	const deep = "spec.template.spec.template.spec.containers[0].tty"
	if !slices.ContainsFunc(transitions, func(c values.Transition) bool { return c.Field == deep }) {
		t.Errorf("no transition of %s", deep)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []values.Options{
		{Values: map[string][]any{"spec.sise": nil}},
		{Values: map[string][]any{"spec.shelves[0].rows": {1}}},
	} {
		_, _, err := values.Transitions(schemaOf[Shop](t), sample(t, `{}`), o)
		if err == nil || !strings.Contains(err.Error(), "is not in the schema, or is in an object or a list that the sample does not have") {
			t.Errorf("%+v: got the error %v", o, err)
		}
	}
}

// Definitions that yare does not make are read too.
func TestForeignDefinition(t *testing.T) {
	t.Parallel()
	const definition = `{"metadata":{"name":"things.example.com"},"spec":{"versions":[
		{"name":"v1alpha1"},
		{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
			"oneOf":[{"required":["a"]},{"required":["b"]}],
			"properties":{
				"a":{"type":"object","additionalProperties":true},
				"b":{"type":"integer","maximum":-1,"exclusiveMaximum":true},
				"c":{"type":"integer","multipleOf":5,"minimum":1,"maximum":19,"not":{"enum":[5]}},
				"d":{"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
					"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}
			}}}}}}]}}`
	sample := map[string]any{"spec": map[string]any{"a": map[string]any{"x": 1}, "b": -2, "c": 5, "d": "2"}}
	transitions, _ := find(t, parse(t, []byte(definition)), sample, values.Options{})
	want := []string{
		`spec: sample -> absent {"spec":null}`,
		`spec.a: sample -> absent {"spec":{"a":null}}`,
		`spec.a: sample -> empty {"spec":{"a":{"x":null}}}`,
		`spec.a: sample -> more {"spec":{"a":{"explored":1}}}`,
		`spec.b: sample -> absent {"spec":{"b":null}}`,
		`spec.c: sample -> absent {"spec":{"c":null}}`,
		`spec.c: sample -> maximum {"spec":{"c":15}}`,
		`spec.c: sample -> other {"spec":{"c":10}}`,
		`spec.d: sample -> absent {"spec":{"d":null}}`,
		`spec.d: sample -> half {"spec":{"d":"1"}}`,
		`spec.d: sample -> double {"spec":{"d":"4"}}`,
	}
	if diff := cmp.Diff(want, fromSample(t, sample, transitions)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for version, want := range map[string]string{
		"v1alpha1": "the version v1alpha1 of the CustomResourceDefinition things.example.com has no schema",
		"v2":       "the CustomResourceDefinition things.example.com has no version v2",
	} {
		if _, err := values.ParseDefinition([]byte(definition), version); err == nil || err.Error() != want {
			t.Errorf("version %s: got the error %v, want %s", version, err, want)
		}
	}
}

// schemaOf returns the schema of a Go type.
func schemaOf[T any, P kube.DefinedObjectOf[T]](t *testing.T) *values.Schema {
	t.Helper()
	definition, err := crd.Of[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, []byte(marshal(t, definition)))
}

func parse(t *testing.T, definition []byte) *values.Schema {
	t.Helper()
	schema, err := values.ParseDefinition(definition, "v1")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func readYAML(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sample returns an object with the spec.
func sample(t *testing.T, spec string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utiljson.Unmarshal([]byte(`{"metadata":{"name":"sample"},"spec":`+spec+`}`), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func find(t *testing.T, s *values.Schema, sample map[string]any, o values.Options) ([]values.Transition, []values.Field) {
	t.Helper()
	transitions, fields, err := values.Transitions(s, sample, o)
	if err != nil {
		t.Fatal(err)
	}
	return transitions, fields
}

// fromSample returns the transitions that begin with the sample, with the merge patches of the
// transitions.
func fromSample(t *testing.T, sample map[string]any, transitions []values.Transition) []string {
	t.Helper()
	var lines []string
	for _, change := range transitions {
		if change.From == "sample" {
			lines = append(lines, change.String()+" "+marshal(t, patchOf(t, sample, change.Objects[0])))
		}
	}
	return lines
}

// patchOf returns the merge patch that makes one object of the other.
func patchOf(t *testing.T, from, to map[string]any) map[string]any {
	t.Helper()
	patch := map[string]any{}
	for name := range from {
		if _, stays := to[name]; !stays {
			patch[name] = nil
		}
	}
	for name, after := range to {
		before, existed := from[name]
		was, wasObject := before.(map[string]any)
		is, isObject := after.(map[string]any)
		switch {
		case existed && marshal(t, before) == marshal(t, after):
		case wasObject && isObject:
			patch[name] = patchOf(t, was, is)
		default:
			patch[name] = after
		}
	}
	return patch
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
