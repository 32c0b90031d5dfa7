package kube

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// fixtures returns the JSON files that k8s.io/api has of each of its types.
func fixtures(t testing.TB) []string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatalf("find k8s.io/api: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "testdata", "HEAD", "*.json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d fixtures of k8s.io/api: %v", len(files), err)
	}
	return files
}

// stdMarshal encodes as encoding/json does, without the escapes for HTML, which mean the same.
func stdMarshal(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Unmarshal and Marshal do to every type of k8s.io/api what the decoder of Kubernetes and
// encoding/json do.
func TestJSONOfEveryBuiltinType(t *testing.T) {
	t.Parallel()
	// Not objects of an API server: what it sends to webhooks, and discovery.
	outside := []string{"admission.k8s.io.", "apidiscovery.k8s.io.", "imagepolicy.k8s.io.", "core.v1.WatchEvent."}
	for _, file := range fixtures(t) {
		if slices.ContainsFunc(outside, func(prefix string) bool { return strings.HasPrefix(filepath.Base(file), prefix) }) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var meta metav1.TypeMeta
			if err := stdjson.Unmarshal(data, &meta); err != nil {
				t.Fatal(err)
			}
			got, err := scheme.Scheme.New(meta.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			decoded := func(unmarshal func([]byte, any) error) any {
				into := reflect.New(reflect.TypeOf(got).Elem()).Interface()
				if err := unmarshal(data, into); err != nil {
					t.Fatal(err)
				}
				return into
			}
			ours := decoded(Unmarshal)
			for name, unmarshal := range map[string]func([]byte, any) error{
				"encoding/json": stdjson.Unmarshal, "Kubernetes": utiljson.Unmarshal,
				"one pass": func(data []byte, into any) error { return json.Unmarshal(data, into, kubejson.OnePass()) },
			} {
				if theirs := decoded(unmarshal); !reflect.DeepEqual(ours, theirs) {
					t.Errorf("decoded differently by %s:\n%s", name, cmp.Diff(string(stdMarshal(t, theirs)), string(stdMarshal(t, ours))))
				}
			}
			encoded, err := Marshal(ours)
			if err != nil {
				t.Fatal(err)
			}
			if want := stdMarshal(t, ours); !bytes.Equal(encoded, want) {
				t.Errorf("encoded differently:\n%s", cmp.Diff(string(want), string(encoded)))
			}
			empty := reflect.New(reflect.TypeOf(got).Elem()).Interface()
			encoded, err = Marshal(empty)
			if err != nil {
				t.Fatal(err)
			}
			if want := stdMarshal(t, empty); !bytes.Equal(encoded, want) {
				t.Errorf("the zero value is encoded differently:\n%s", cmp.Diff(string(want), string(encoded)))
			}
		})
	}
}

// The rules that are easy to get wrong, each against the two oracles.
func TestJSONRules(t *testing.T) {
	t.Parallel()
	type inner struct {
		Deep string `json:"deep,omitempty"`
	}
	type common struct {
		Shared string `json:"shared"`
	}
	type all struct {
		metav1.TypeMeta `json:",inline"`
		common          `json:",inline"`
		Quantity        resource.Quantity     `json:"quantity"`
		PQuantity       *resource.Quantity    `json:"pQuantity,omitempty"`
		IntOrString     intstr.IntOrString    `json:"intOrString"`
		Time            metav1.Time           `json:"time"`
		PTime           *metav1.Time          `json:"pTime"`
		MicroTime       metav1.MicroTime      `json:"microTime"`
		Duration        metav1.Duration       `json:"duration"`
		GoDuration      time.Duration         `json:"goDuration"`
		Fields          *metav1.FieldsV1      `json:"fields,omitempty"`
		Raw             runtime.RawExtension  `json:"raw"`
		PRaw            *runtime.RawExtension `json:"pRaw,omitempty"`
		Inner           inner                 `json:"inner,omitempty"`
		Zero            inner                 `json:"zero,omitzero"`
		Bytes           []byte                `json:"bytes"`
		Strings         []string              `json:"strings"`
		Map             map[string]*inner     `json:"map"`
		Any             any                   `json:"any"`
		Float           float64               `json:"float"`
		Int             int64                 `json:"int"`
		Text            string                `json:"text"`
		Quoted          int64                 `json:"quoted,string"`
		Untagged        string
		Named           inner                 `json:",inline"`
		Array           [2]int                `json:"array"`
		ByInt           map[int]string        `json:"byInt,omitempty"`
		Secret          string                `json:"-"`
		Selector        *metav1.LabelSelector `json:"selector,omitempty"`
	}
	for name, data := range map[string]string{
		"nothing":        `{}`,
		"null":           `null`,
		"inline":         `{"kind":"K","apiVersion":"g/v1","shared":"s"}`,
		"case":           `{"Text":"no","TEXT":"no","untagged":"no","Shared":"no"}`,
		"case beside":    `{"Text":"no","text":"yes","TEXT":"no"}`,
		"quantity":       `{"quantity":"1500m","pQuantity":"1Gi"}`,
		"quantity int":   `{"quantity":3}`,
		"quantity null":  `{"quantity":null,"pQuantity":null}`,
		"int":            `{"intOrString":80}`,
		"string":         `{"intOrString":"http"}`,
		"times":          `{"time":"2026-01-02T03:04:05Z","pTime":"2026-01-02T03:04:05+01:00","microTime":"2026-01-02T03:04:05.123456Z"}`,
		"time null":      `{"time":null,"pTime":null,"microTime":null}`,
		"duration":       `{"duration":"1m30s","goDuration":5000}`,
		"fields":         `{"fields":{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}}`,
		"raw":            `{"raw":{"b": 1, "a":[ 1.0, 2e3 ], "c":null},"pRaw":{}}`,
		"raw null":       `{"raw":null,"pRaw":null}`,
		"unknown":        `{"unknown":{"deep":[1,2,{"x":null}]},"text":"t"}`,
		"twice":          `{"text":"first","text":"second","map":{"a":{"deep":"x"}},"map":{"b":null}}`,
		"nulls":          `{"text":null,"strings":null,"map":{"a":null},"int":null,"inner":null,"any":null,"bytes":null}`,
		"empties":        `{"strings":[],"map":{},"bytes":"","any":{}}`,
		"bytes":          `{"bytes":"aGVsbG8="}`,
		"large int":      `{"int":9223372036854775807}`,
		"float":          `{"float":1e21,"any":0.1}`,
		"any int":        `{"any":{"id":9007199254740993,"list":[-9223372036854775808,-0,1.0,1e3,null,{"deep":9223372036854775807}]}}`,
		"any large":      `{"any":9223372036854775808}`,
		"any too large":  `{"any":[1,1e400]}`,
		"any twice":      `{"any":{"a":1,"a":2,"b":"\ud800"}}`,
		"escapes":        `{"text":"<a href=\"x\">&\u2028\ud83d\ude00\u0000"}`,
		"invalid utf-8":  "{\"text\":\"a\xffb\"}",
		"lone surrogate": `{"text":"\ud800"}`,
		"quoted":         `{"quoted":"12"}`,
		"inline by name": `{"Named":{"deep":"d"},"deep":"not here"}`,
		"array":          `{"array":[1]}`,
		"array long":     `{"array":[1,2,3]}`,
		"int keys":       `{"byInt":{"2":"b","10":"a"}}`,
		"selector":       `{"selector":{"matchLabels":{"z":"1","a":"2"}}}`,
		"dash":           `{"-":"x","Secret":"y"}`,
		"wrong type":     `{"text":5,"int":7}`,
		"wrong float":    `{"int":1.5}`,
		"overflow":       `{"int":9223372036854775808}`,
		"trailing":       `{} {}`,
		"cut":            `{"text":"a`,
		"empty":          ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ours, theirs all
			errOurs, errTheirs := Unmarshal([]byte(data), &ours), utiljson.Unmarshal([]byte(data), &theirs)
			if (errOurs == nil) != (errTheirs == nil) {
				t.Fatalf("our error is %v, the one of Kubernetes %v", errOurs, errTheirs)
			}
			var fresh all
			if err := newDecoder().decode([]byte(data), &fresh); fmt.Sprint(err) != fmt.Sprint(errOurs) || !reflect.DeepEqual(fresh, ours) {
				t.Errorf("decoded differently in one pass, error %v, want %v:\n%s", err, errOurs, cmp.Diff(string(stdMarshal(t, ours)), string(stdMarshal(t, fresh))))
			}
			if errOurs != nil {
				return
			}
			if !reflect.DeepEqual(ours, theirs) {
				t.Errorf("decoded differently:\n%s", cmp.Diff(string(stdMarshal(t, theirs)), string(stdMarshal(t, ours))))
			}
			encoded, err := Marshal(ours)
			if err != nil {
				t.Fatal(err)
			}
			if want := stdMarshal(t, ours); !bytes.Equal(encoded, want) {
				t.Errorf("encoded differently:\n%s", cmp.Diff(string(want), string(encoded)))
			}
		})
	}
}

// A struct whose tags are wrong decodes as it does by encoding/json.
func TestJSONOfWrongTags(t *testing.T) {
	t.Parallel()
	type wrong struct {
		Text  string `json:"text"`
		Flags []bool `json:"flags,string"` //nolint:staticcheck // the tag is wrong on purpose
	}
	const data = `{"text":"t","flags":[true]}`
	var ours, theirs wrong
	if json.Unmarshal([]byte(data), &ours, kubejson.OnePass()) == nil {
		t.Error("the test needs a tag that one pass refuses")
	}
	if err := stdjson.Unmarshal([]byte(data), &theirs); err != nil {
		t.Fatal(err)
	}
	if err := newDecoder().decode([]byte(data), &ours); err != nil || !reflect.DeepEqual(ours, theirs) {
		t.Errorf("decoded %+v, %v, want %+v", ours, err, theirs)
	}
}

// A type of another module is wrapped; what it embeds stays where it was in the JSON.
func TestJSONOfWrappedType(t *testing.T) {
	t.Parallel()
	var got wrapped
	if err := Unmarshal([]byte(`{"kind":"Wrapped","metadata":{"name":"n"},"data":{"a":"b"}}`), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "Wrapped" || got.Name != "n" || got.Data["a"] != "b" {
		t.Errorf("decoded %+v", got)
	}
	encoded, err := Marshal(&got)
	if err != nil {
		t.Fatal(err)
	}
	if want := stdMarshal(t, &got); !bytes.Equal(encoded, want) {
		t.Errorf("encoded %s, want %s", encoded, want)
	}
}

type wrapped struct{ corev1.ConfigMap }

func (wrapped) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Wrapped"}
}

func FuzzJSONLikeKubernetes(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","creationTimestamp":null},"spec":{"replicas":0,"template":{"spec":{"containers":[{"image":"i","resources":{"limits":{"cpu":"1"}}}]}}}}`))
	f.Add([]byte(`{"a":[9007199254740993,9223372036854775808,-0,0.0,1e2,{"b":null,"c":true,"d":"\u00e9"}],"e":{},"f":[]}`))
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}},"SPEC":{},"spec":{"strategy":{"rollingUpdate":{"maxSurge":"25%"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours, theirs, fresh appsv1.Deployment
		errOurs, errTheirs := Unmarshal(data, &ours), utiljson.Unmarshal(data, &theirs)
		if err := newDecoder().decode(data, &fresh); fmt.Sprint(err) != fmt.Sprint(errOurs) || !reflect.DeepEqual(fresh, ours) {
			t.Fatalf("%q: decoded differently in one pass, error %v, want %v", data, err, errOurs)
		}
		if errTheirs != nil {
			return // what is refused, and how early, may differ
		}
		if errOurs != nil {
			t.Fatalf("refused %q: %v", data, errOurs)
		}
		var ourAny, theirAny, freshAny map[string]any
		if utiljson.Unmarshal(data, &theirAny) == nil {
			if err := errors.Join(Unmarshal(data, &ourAny), newDecoder().decode(data, &freshAny)); err != nil ||
				!reflect.DeepEqual(ourAny, theirAny) || !reflect.DeepEqual(freshAny, theirAny) {
				t.Fatalf("%q: decoded %#v and %#v, error %v, want %#v", data, ourAny, freshAny, err, theirAny)
			}
		}
		a, errA := stdjson.Marshal(ours)
		b, errB := stdjson.Marshal(theirs)
		if (errA == nil) != (errB == nil) || !bytes.Equal(a, b) {
			t.Fatalf("%q: decoded\n%s (%v), want\n%s (%v)", data, a, errA, b, errB)
		}
	})
}

// An integer in a value of any type is decoded as an integer, also behind a named interface, in an unstructured object, and in
// what an author decodes. As a float64 the identifier below would be 9007199254740992.
func TestIntegersInAny(t *testing.T) {
	t.Parallel()
	type value interface{}
	type loose struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              map[string]value `json:"spec"`
	}
	const data = `{"metadata":{"name":"a"},"spec":{"id":9007199254740993,"ratio":1.5}}`
	want := map[string]any{"id": int64(9007199254740993), "ratio": 1.5}
	var l loose
	if err := newDecoder().decode([]byte(data), &l); err != nil || l.Spec["id"] != want["id"] || l.Spec["ratio"] != want["ratio"] {
		t.Errorf("decoded %#v, %v", l.Spec, err)
	}
	var u unstructured.Unstructured
	if err := (objectDecoder{decoder: newDecoder()}).decode([]byte(data), &u); err != nil || !reflect.DeepEqual(u.Object["spec"], want) {
		t.Errorf("decoded the unstructured object %#v, %v", u.Object, err)
	}
	var plain struct{ Spec any }
	if err := Unmarshal([]byte(`{"Spec":{"id":9007199254740993,"ratio":1.5}}`), &plain); err != nil || !reflect.DeepEqual(plain.Spec, want) {
		t.Errorf("decoded %#v, %v", plain.Spec, err)
	}
	var known any = new(float64) // an interface that points to a value keeps its type
	if err := Unmarshal([]byte(`3`), &known); err != nil || *known.(*float64) != 3 {
		t.Errorf("decoded %#v, %v", known, err)
	}
}

// keptSpec has a value of each kind that a decoder could leave in the bytes that it reads.
type keptSpec struct {
	Text     string                        `json:"text"`
	Escaped  string                        `json:"escaped"`
	List     []string                      `json:"list"`
	Map      map[string]string             `json:"map"`
	Bytes    []byte                        `json:"bytes"`
	Raw      stdjson.RawMessage            `json:"raw"`
	Object   runtime.RawExtension          `json:"object"`
	Any      any                           `json:"any"`
	Quantity resource.Quantity             `json:"quantity"`
	Port     intstr.IntOrString            `json:"port"`
	Members  map[string]stdjson.RawMessage `json:"members"`
}

func (keptSpec) Definition() Definition {
	return Definition{Group: "test.example.com", Version: "v1", Kind: "Kept"}
}

// The buffer of an object is used again for the next object, while the reconcile of the first one is under way.
func TestDecodedObjectsKeepNothingOfTheirJSON(t *testing.T) {
	t.Parallel()
	object := []byte(`{"apiVersion":"test.example.com/v1","kind":"Kept","metadata":{"name":"rose","namespace":"garden","uid":"u",
		"resourceVersion":"7","labels":{"color":"red"},"creationTimestamp":"2026-01-02T03:04:05Z","finalizers":["a/b"],
		"managedFields":[{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:text":{}}}}]},
		"spec":{"text":"long enough","escaped":"a\u0020\"b\"","list":["x","y"],"map":{"k":"v"},"bytes":"aGVsbG8=",
		"raw":{"r":1},"object":{"kind":"Inner","name":"i"},"any":{"deep":["d",{"e":"f"}]},"quantity":"1500m","port":"http",
		"members":{"m":{"n":"o"}}}}`)
	c, err := NewClient(&Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	api := Namespaced[CustomResource[keptSpec, None]](c, "garden")
	want, err := api.Decode(bytes.Clone(object))
	if err != nil {
		t.Fatal(err)
	}
	got, err := api.Decode(object)
	if err != nil {
		t.Fatal(err)
	}
	for i := range object {
		object[i] = '#'
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the object has changed with the bytes that it was decoded from:\n%+v\nwant\n%+v", got, want)
	}
}
