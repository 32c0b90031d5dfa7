package kube

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/internal/ident"
)

// vessel is a type of its own, with methods.
type vessel CustomResource[gadgetSpec, gadgetStatus]

func (v *vessel) isLarge() bool                  { return v.Spec.Size > 10 }
func (v *vessel) DeepCopyObject() runtime.Object { return DeepCopy(v) }

var (
	_ runtime.Object = (*gadget)(nil)
	_ runtime.Object = (*CustomResourceList[vessel])(nil)
	_ Defined        = (*vessel)(nil)
)

// A type that an author declares from CustomResource is the same resource, has the same JSON and
// literals, and its own methods.
func TestOwnTypeOfACustomResource(t *testing.T) {
	t.Parallel()
	alias, err := TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	own, err := TypeOf[vessel]()
	if err != nil {
		t.Fatal(err)
	}
	if own.Resource != alias.Resource || !own.HasStatus() || own.Definition == nil || ident.GoTypeName(own.Go) != "kube.vessel" {
		t.Errorf("the type is %+v, that of the alias %+v", own, alias)
	}
	v := &vessel{ObjectMeta: named("ns", "v"), Spec: gadgetSpec{Size: 11}, Status: gadgetStatus{Ready: true}}
	if !v.isLarge() {
		t.Error("its method does not work")
	}
	for _, each := range []any{v, &gadget{ObjectMeta: v.ObjectMeta, Spec: v.Spec, Status: v.Status}} {
		data, err := Marshal(each)
		if want := `{"metadata":{"name":"v","namespace":"ns"},"spec":{"size":11},"status":{"ready":true}}`; err != nil || string(data) != want {
			t.Errorf("the JSON is %s, %v", data, err)
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
	if diff := cmp.Diff([]string{"metadata", "spec", "status"}, keysOf(content)); err != nil || diff != "" {
		t.Errorf("unstructured, it is %v, %v", content, err)
	}
}

func keysOf(m map[string]any) (keys []string) {
	for _, k := range []string{"apiVersion", "definedBy", "kind", "metadata", "objectMeta", "spec", "status", "typeMeta"} {
		if _, ok := m[k]; ok {
			keys = append(keys, k)
		}
	}
	return keys
}

type embedding struct {
	vessel
	cached string
	Hidden int `json:"-"`
}

type beside struct {
	gadget
	Extra string `json:"extra"`
}

func TestEmbeddedCustomResource(t *testing.T) {
	t.Parallel()
	if kind, err := TypeOf[embedding](); err != nil || kind.Resource.Kind != "Gadget" || !kind.HasStatus() {
		t.Errorf("the type is %+v, %v", kind, err)
	}
	_ = embedding{}.cached
	_, err := TypeOf[beside]()
	wantError(t, err, "kube.beside: the field Extra stands beside the embedded", "put it into the Spec or the Status")
}

type sealed struct{ values map[string]string }

func (s sealed) MarshalJSON() ([]byte, error)  { return json.Marshal(s.values) }
func (s *sealed) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &s.values) }

type deep struct {
	Time      metav1.Time
	Quantity  resource.Quantity
	Limits    corev1.ResourceList
	Port      *intstr.IntOrString
	Any       map[string]any
	Raw       runtime.RawExtension
	Fixed     [2][]int
	Sealed    *sealed
	Interface any
	Pods      []corev1.Pod
	Nested    map[string]map[string]*int
	hidden    int
}

// A copy is equal, and shares nothing.
func TestDeepCopy(t *testing.T) {
	t.Parallel()
	made := func() *deep {
		one, port := 1, intstr.FromString("http")
		return &deep{
			Time: metav1.Unix(1, 0), Quantity: resource.MustParse("1.5"), Limits: corev1.ResourceList{"cpu": resource.MustParse("100m")},
			Port: &port, Any: map[string]any{"list": []any{map[string]any{"a": int64(1)}}}, Raw: runtime.RawExtension{Raw: []byte("{}")},
			Fixed: [2][]int{{1}, {2}}, Sealed: &sealed{values: map[string]string{"a": "1"}}, Interface: []string{"a"},
			Pods:   []corev1.Pod{{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}},
			Nested: map[string]map[string]*int{"a": {"b": &one}}, hidden: 3,
		}
	}
	original := made()
	c := DeepCopy(original)
	options := cmp.AllowUnexported(deep{}, sealed{})
	if diff := cmp.Diff(made(), c, options); diff != "" {
		t.Errorf("the copy differs: %s", diff)
	}
	c.Limits["cpu"] = resource.MustParse("1")
	*c.Port = intstr.FromInt32(1)
	c.Any["list"].([]any)[0].(map[string]any)["a"] = "changed"
	c.Raw.Raw[0], c.Fixed[0][0], c.Interface.([]string)[0] = 'x', 9, "changed"
	c.Sealed.values["a"] = "changed"
	c.Pods[0].Spec.Containers[0].Name = "changed"
	*c.Nested["a"]["b"] = 9
	c.Nested["a"]["c"] = nil
	c.Quantity.Add(resource.MustParse("1"))
	if diff := cmp.Diff(made(), original, options); diff != "" {
		t.Errorf("changes of the copy show in the original: %s", diff)
	}
	if DeepCopy[deep](nil) != nil {
		t.Error("the copy of nil is not nil")
	}
	list := &CustomResourceList[vessel]{Items: []vessel{{Spec: gadgetSpec{Parts: map[string]string{"a": "1"}}}}}
	list.DeepCopyObject().(*CustomResourceList[vessel]).Items[0].Spec.Parts["a"] = "changed"
	if list.Items[0].Spec.Parts["a"] != "1" {
		t.Error("the items of the list are shared")
	}
}

// guarded copies itself, as generated code does.
type guarded struct{ hidden *int }

func (g *guarded) DeepCopyInto(to *guarded) {
	*to = *g
	if g.hidden != nil {
		to.hidden = new(int)
		*to.hidden = *g.hidden
	}
}

// embedsGuarded has the method of guarded, which copies a part of it.
type embedsGuarded struct {
	guarded
	Names []string
}

// A struct within the copied one is copied by its own method, which knows the unexported fields.
func TestDeepCopyByMethod(t *testing.T) {
	t.Parallel()
	one := 1
	original := &struct{ G []guarded }{[]guarded{{&one}}}
	c := DeepCopy(original)
	if *c.G[0].hidden != 1 || c.G[0].hidden == original.G[0].hidden {
		t.Error("the unexported field is not copied")
	}
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "has the unexported field guarded") {
			t.Errorf("a method of an embedded struct was used: %s", text)
		}
	}()
	DeepCopy(&struct{ E embedsGuarded }{})
}

type secretive struct{ hidden *int }

// The first copy of a type that cannot be copied panics, whatever the value holds.
func TestDeepCopyOfWhatCannotBeCopied(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]func(){
		"kube.secretive has the unexported field hidden": func() { DeepCopy(&struct{ S secretive }{}) },
		"a func() cannot be copied":                      func() { DeepCopy(&struct{ F func() }{}) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, want) {
					t.Errorf("the panic is %q, want %q in it", text, want)
				}
			}()
			f()
		}()
	}
}
