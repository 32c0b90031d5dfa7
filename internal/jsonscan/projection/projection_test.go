package projection_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/internal/jsonscan/projection"
	"github.com/yare-go/yare/kube"
)

// part has a field of each sort.
type part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	embedded
	Spec struct {
		NodeName   string            `json:"nodeName"`
		Selector   map[string]string `json:"nodeSelector,omitempty"`
		Containers []struct {
			Image     string `json:"image"`
			Resources struct {
				Requests map[corev1.ResourceName]resource.Quantity `json:"requests"`
			} `json:"resources"`
		} `json:"containers"`
		Port *intstr.IntOrString `json:"port"`
	} `json:"spec"`
	Tree   *tree `json:"tree,omitempty"`
	Hidden int   `json:"-"`
	secret int
}

type embedded struct {
	Kept string `json:"kept"`
}

// tree contains itself.
type tree struct {
	Value    int     `json:"value"`
	Children []*tree `json:"children"`
}

func TestFieldsOfAType(t *testing.T) {
	t.Parallel()
	f, err := projection.Of(reflect.TypeFor[part]())
	if err != nil {
		t.Fatal(err)
	}
	want := "kept,spec.containers.image,spec.containers.resources.requests,spec.nodeName,spec.nodeSelector,spec.port,tree.children,tree.value"
	if got := f.String(); got != want {
		t.Errorf("the fields are\n%s, want\n%s", got, want)
	}
	if got := projection.Parse(want).String(); got != want {
		t.Errorf("parsed and printed again, they are %s", got)
	}
}

func TestFieldsThatCannotBeNamed(t *testing.T) {
	t.Parallel()
	if _, err := projection.Of(reflect.TypeFor[struct {
		A int `json:"a.b"`
	}]()); err == nil {
		t.Error("a name with a dot was accepted")
	}
}

func TestAppendObject(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, fields, object, want string }{
		{"other fields are dropped", "status.phase",
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"x":1},"status":{"phase":"Running","y":[1]}}`,
			`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"status":{"phase":"Running"}}`},
		{"managedFields are dropped", "",
			`{"metadata":{"managedFields":[{"x":1}],"name":"a","labels":{"managedFields":"no"}},"spec":1}`,
			`{"metadata":{"name":"a","labels":{"managedFields":"no"}}}`},
		{"elements of lists are reduced", "spec.c.image",
			`{"spec":{"c":[{"image":"a","x":1},{"x":2},{"image":"b"}],"d":1}}`,
			`{"spec":{"c":[{"image":"a"},{},{"image":"b"}]}}`},
		{"values that are no objects stay", "spec.x",
			`{"spec":null,"metadata":null}`, `{"spec":null,"metadata":null}`},
		{"a name with an escape", `spec.a"b`, `{"spec":{"a\"b":1,"\u0061":2}}`, `{"spec":{"a\"b":1}}`},
		{"lists of lists", "spec.x", `{"spec":[[{"x":1,"y":2}],[]]}`, `{"spec":[[{"x":1}],[]]}`},
	} {
		got, err := projection.Parse(c.fields).AppendObject([]byte("before"), []byte(c.object))
		if err != nil || string(got) != "before"+c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// FuzzAppendObject checks that a type reads the same from an object and from its projection.
func FuzzAppendObject(f *testing.F) {
	for _, object := range []string{
		`{"kind":"Part","metadata":{"name":"a","managedFields":[{"manager":"m"}]},"kept":"yes","spec":{"nodeName":"n","nodeSelector":{"a":"b"},"containers":[{"image":"i","name":"x","resources":{"requests":{"cpu":"1"},"limits":{}}}],"port":80},"tree":{"value":1,"children":[{"value":2,"children":[{"value":3}]}]}}`,
		`{"spec":null}`, `{"spec":{"containers":[null,{}]},"tree":null}`, `[]`, `{`, `{"spec":{"containers":{}}}`,
	} {
		f.Add([]byte(object))
	}
	fields, err := projection.Of(reflect.TypeFor[part]())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		if !json.Valid(object) {
			_, _ = fields.AppendObject(nil, object) // it must not panic
			return
		}
		reduced, err := fields.AppendObject(nil, object)
		if err != nil || !json.Valid(reduced) {
			t.Fatalf("%s became %s, %v", object, reduced, err)
		}
		var whole, less part
		errWhole, errLess := kube.Unmarshal(object, &whole), kube.Unmarshal(reduced, &less)
		whole.ManagedFields = nil
		if errWhole == nil && (errLess != nil || !cmp.Equal(whole, less, cmp.AllowUnexported(part{}))) {
			t.Errorf("%s and its projection %s differ: %s (%v)", object, reduced, cmp.Diff(whole, less, cmp.AllowUnexported(part{})), errLess)
		}
	})
}
