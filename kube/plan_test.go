package kube

import (
	stdjson "encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// What a plan decodes is what Unmarshal decodes, for every type of k8s.io/api, and plans decode all
// of these types.
func TestPlanOfEveryBuiltinType(t *testing.T) {
	t.Parallel()
	d := newDecoder()
	for _, file := range fixtures(t) {
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
			object, err := scheme.Scheme.New(meta.GroupVersionKind())
			if err != nil {
				t.Skip(err) // it is no object of an API server
			}
			typ := reflect.TypeOf(object).Elem()
			got, want := reflect.New(typ).Interface(), reflect.New(typ).Interface()
			if !d.plans.Decode(data, got) {
				t.Fatal("the plan leaves it to the decoder of all types")
			}
			if err := Unmarshal(data, want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

type planned struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              corev1.PodSpec          `json:"spec,omitempty"`
	Deployment        appsv1.DeploymentStatus `json:"status"`
	Any               any                     `json:"any"`
	Numbers           []uint8                 `json:"numbers"`
	Floats            []float64               `json:"floats"`
	Pointers          []*string               `json:"pointers"`
	Nested            map[string][]string     `json:"nested"`
	Maps              map[string]map[string]bool
	Small             int8                  `json:"small"`
	Unsigned          *uint16               `json:"unsigned"`
	Standard          stdjson.RawMessage    `json:"standard"`
	Number            stdjson.Number        `json:"number"`
	Self              *planned              `json:"self"`
	Struct            struct{ Text string } `json:"struct"`
}

// FuzzPlan compares what a plan decodes with what Unmarshal decodes.
func FuzzPlan(f *testing.F) {
	for _, text := range []string{
		`{"kind":"K","apiVersion":"v1","metadata":{"name":"n","labels":{"a":"b","c":""},"creationTimestamp":"2026-01-02T03:04:05Z","generation":7,"managedFields":[{"manager":"m","time":"2026-01-02T03:04:05+01:00","fieldsV1":{"f:a":{"k:{\"b\":1}":{}}}}],"ownerReferences":[{"controller":true}],"finalizers":["f"]}}`,
		`{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}}}],"nodeSelector":{},"tolerations":[]},"status":{"replicas":-1}}`,
		`{"any":[1,9007199254740993,9223372036854775808,1.5,"a",true,false,{},[],{"a":null}],"numbers":"AQI=","floats":[1e3,-0],"pointers":["a",null],"nested":{"a":["b"],"c":null,"d":[]},"Maps":{"a":{"b":true}}}`,
		`{"small":127,"unsigned":65535,"standard":{"a": 1},"number":12,"self":{"self":{"small":-128}},"struct":{"Text":"\u00e9\n\ud83d\ude00"}}`,
		`{"small":128}`, `{"small":1.0}`, `{"unsigned":-1}`, `{"small":-0}`, `{"small":"1"}`, `{"small":null,"self":null,"any":null,"struct":null,"number":null,"standard":null}`,
		`{"kind":"a","kind":"b"}`, `{"metadata":{"labels":{"a":"b","a":"c"}}}`, `{"nested":{"a":["b"],"a":["c"]}}`, `{"metadata":{"labels":{"a":null}}}`, `{"metadata":{"finalizers":["a",null]}}`,
		`{"Kind":"K","KIND":"K","maps":{}}`, "{\"kind\":\"\xff\"}", `{"kind":"\ud800"}`, `{"\u006bind":"K"}`, "{\"metadata\":{\"labels\":{\"\xff\":\"\"}}}", "{\"kind\":\"a\x01\"}",
		`{"metadata":{"creationTimestamp":"yesterday"}}`, `{"metadata":{"creationTimestamp":null,"deletionTimestamp":null}}`, `{"metadata":[]}`, `{"metadata":{"labels":[]}}`,
		`{"number":"12"}`, `{"number":"x"}`, `{"unknown":[1,{"a":[}]}`, `{"unknown":01}`, `{} {}`, `{}x`, ` { } `, `null`, `[]`, `"x"`, ``, `{"kind"`, `{"kind":"K"`, `{"kind":"K",}`, `{,}`, `{"kind" "K"}`, `{"self":{"self":`,
	} {
		f.Add([]byte(text))
	}
	d := newDecoder()
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want planned
		if !d.plans.Decode(data, &got) {
			return
		}
		if err := Unmarshal(data, &want); err != nil {
			t.Fatalf("the plan decodes what Unmarshal refuses: %v: %q", err, data)
		}
		// Two NaNs would differ, but JSON has none.
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %s", data, cmp.Diff(fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)))
		}
	})
}

// Types whose rules are not plain are left to the decoder of all types.
func TestTypesWithoutPlan(t *testing.T) {
	t.Parallel()
	type embedded struct{ A string }
	d := newDecoder()
	for _, into := range []any{
		new(struct{ embedded }),
		new(struct{ *metav1.TypeMeta }),
		new(struct {
			A int `json:",string"`
		}),
		new(struct {
			metav1.TypeMeta `json:",inline"`
			Outer           string `json:"kind"`
		}),
		new(struct {
			A embedded `json:",inline"`
		}),
		new(struct {
			A string `json:"a'b"` //nolint:staticcheck // the quote is what is tested
		}),
		new(fmt.Stringer),
	} {
		if d.plans.Decode([]byte(`{}`), into) {
			t.Errorf("%T has a plan", into)
		}
	}
}
