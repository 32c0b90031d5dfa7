package kube

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// podTarget returns the target of all Pods.
func podTarget() target {
	return target{resource: wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods"}}
}

// A target that is not in a namespace takes the namespace of an object. A target in a namespace refuses
// objects of other namespaces.
func TestTargetTakesTheNamespaceOfAnObject(t *testing.T) {
	t.Parallel()
	inAll, inOne := podTarget(), podTarget()
	inOne.namespace = "one"
	other := &gadget{ObjectMeta: named("other", "p")}
	got, err := inAll.inNamespaceOf(wire.VerbCreate, other)
	if err != nil || got.namespace != "other" {
		t.Errorf("in %q: %v", got.namespace, err)
	}
	_, err = inOne.inNamespaceOf(wire.VerbCreate, other)
	wantError(t, err, `create pods "other/p": it is not in the namespace "one"`)
	got, err = inOne.inNamespaceOf(wire.VerbCreate, &gadget{ObjectMeta: named("", "p")})
	if err != nil || got.namespace != "one" {
		t.Errorf("in %q: %v", got.namespace, err)
	}
	_, err = inAll.inNamespaceOf(wire.VerbCreate, &gadget{ObjectMeta: named("", "p")})
	wantError(t, err, "it has no namespace")
}

// A narrowed scope has a stream for each namespace, except of cluster-scoped objects and of a target in
// one namespace.
func TestScopeHasAStreamForEachNamespace(t *testing.T) {
	t.Parallel()
	s := scope{cluster: "east"}.narrow([]string{"b", "a", "b"})
	nodes, inOne := podTarget(), podTarget()
	nodes.resource.Plural, nodes.resource.ClusterScoped = "nodes", true
	inOne.namespace = "one"
	for _, test := range []struct {
		name string
		t    target
		want []string
	}{{"all", podTarget(), []string{"a", "b"}}, {"nodes", nodes, []string{""}}, {"one", inOne, []string{"one"}}} {
		streams, err := s.streams(test.t, []Selector{Label("app", "web")})
		if err != nil || len(streams) != len(test.want) {
			t.Errorf("%s: %d streams: %v", test.name, len(streams), err)
			continue
		}
		for i, stream := range streams {
			if stream.Namespace != test.want[i] || stream.Cluster != "east" || stream.LabelSelector != "app=web" {
				t.Errorf("%s: the stream %d is %+v", test.name, i, stream)
			}
		}
	}
	if s.narrow(nil).err == nil || s.narrow([]string{""}).err == nil || s.err != nil {
		t.Error("a scope without namespaces, or with an empty one, must have an error")
	}
}

// An applier makes the request of an apply, and no client.
func TestApplierMakesTheRequest(t *testing.T) {
	t.Parallel()
	kind, err := TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	a := applier{target: kind.target(nil), manager: "m", pruner: newPruner()}
	obj := &gadget{ObjectMeta: named("ns", "g"), Spec: gadgetSpec{Size: 2}, Status: gadgetStatus{Ready: true}}
	obj.UID = "u"
	r, err := a.request(obj, []ApplyOption{Adopt(), FieldManager("other")})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"ns","uid":"u"},"spec":{"size":2}}`
	if string(r.Body) != want || !r.Adopt || r.Query.Encode() != "fieldManager=other&force=true" || r.Preconditions.UID != "u" {
		t.Errorf("the request is %+v with the body %s", r, r.Body)
	}
	if r, err = a.statusRequest(obj, "7", nil); err != nil || r.Preconditions.ResourceVersion != "7" || r.Query.Get("fieldManager") != "m" {
		t.Errorf("the request of the status is %+v: %v", r, err)
	}
}

// A modification compares an object with itself before a function changed it in place.
func TestModificationComparesAnObjectWithItself(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		modify  func(*gadget)
		changed bool
		want    string
	}{
		"nothing":      {func(*gadget) {}, false, ""},
		"the version":  {func(g *gadget) { g.ResourceVersion = "9" }, false, ""},
		"the spec":     {func(g *gadget) { g.Spec.Size++ }, true, ""},
		"the status":   {func(g *gadget) { g.Status.Ready = true }, false, "the status has changed"},
		"the identity": {func(g *gadget) { g.UID = "other" }, false, "a write changes neither"},
	} {
		kind, _ := TypeOf[gadget]()
		obj := &gadget{ObjectMeta: named("ns", "g")}
		obj.UID, obj.ResourceVersion = "u", "5"
		m, err := newModification(kind.target(nil), obj)
		if err != nil {
			t.Fatal(err)
		}
		test.modify(obj)
		changed, err := m.restoreAndCompare()
		if changed != test.changed || obj.ResourceVersion != "5" {
			t.Errorf("%s: changed %t at the version %s", name, changed, obj.ResourceVersion)
		}
		if test.want != "" {
			wantError(t, err, test.want)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A codec of metadata gives an object the kind of its resource, and names what it cannot decode.
func TestObjectCodecNamesWhatItCannotDecode(t *testing.T) {
	t.Parallel()
	c := podTarget().decoder(nil)
	var g gadget
	if err := c.decode([]byte(`{"metadata":{"name":"p"}}`), &g); err != nil || g.Kind != "Pod" {
		t.Errorf("the kind is %q: %v", g.Kind, err)
	}
	err := c.decode([]byte(`{"metadata":{"namespace":"ns","name":"p","uid":"u"},"spec":7}`), new(gadget))
	wantError(t, err, `decode pods "ns/p"`)
}

// A conflict of a repeated replace is a success if the live object has the content of the replace.
func TestEarlierSuccessComparesTheLiveObject(t *testing.T) {
	t.Parallel()
	r := &wire.Request{Verb: wire.VerbUpdate, Name: "g", Body: []byte(`{"metadata":{"name":"g","resourceVersion":"5"},"spec":{"size":1}}`)}
	for body, want := range map[string]bool{
		`{"metadata":{"name":"g","resourceVersion":"6"},"spec":{"size":1}}`: true,
		`{"metadata":{"name":"g","resourceVersion":"6"},"spec":{"size":2}}`: false,
	} {
		h := earlierSuccess{wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
			return &wire.Response{Code: http.StatusOK, Body: []byte(body)}, nil
		})}
		if _, ok := h.answer(t.Context(), r, &wire.Error{Code: http.StatusConflict}); ok != want {
			t.Errorf("with the live object %s: %t", body, ok)
		}
	}
}
