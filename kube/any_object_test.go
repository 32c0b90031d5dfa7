package kube

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube/wire"
)

// TestWritesTakeAnyObject applies, creates and deletes typed values, interfaces and unstructured objects.
func TestWritesTakeAnyObject(t *testing.T) {
	t.Parallel()
	server := &kindServer{plurals: map[string]string{"Widget": "widgets"}}
	c := NewClientFromHandler(server)
	ctx := t.Context()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "w"}, "spec": map[string]any{"size": int64(1)},
	}}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}

	typed, err := Apply(ctx, c, configMap)
	if err != nil || typed.Data["answer"] != "yes" {
		t.Errorf("typed: %+v, %v", typed, err)
	}
	for _, o := range []Object{configMap, widget} {
		if live, err := Apply(ctx, c, o); err != nil || live.GetUID() != "u" || live == o {
			t.Errorf("%T: %+v, %v", o, live, err)
		}
		if live, err := Create(ctx, c, o); err != nil || live.GetUID() != "u" {
			t.Errorf("%T: %+v, %v", o, live, err)
		}
		if err := c.Delete(ctx, o); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
	live, err := Apply(ctx, c, widget)
	if err != nil || live.Object["data"].(map[string]any)["answer"] != "yes" {
		t.Errorf("unstructured: %+v, %v", live, err)
	}
	if n := server.count(wire.VerbGet); n != 1 {
		t.Errorf("the resource of one kind was looked up %d times", n)
	}
}

// TestPluralIsForgottenAfterA404 replaces the definition of a kind by a definition with another plural.
func TestPluralIsForgottenAfterA404(t *testing.T) {
	t.Parallel()
	server := &kindServer{plurals: map[string]string{"Widget": "widgets"}}
	c := NewClientFromHandler(server)
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "w"},
	}}
	if _, err := Apply(t.Context(), c, widget); err != nil {
		t.Fatal(err)
	}
	server.plurals = map[string]string{"Widget": "widgeta"}
	if _, err := Apply(t.Context(), c, widget); !IsNoResource(err) {
		t.Errorf("the old plural: %v", err)
	}
	if _, err := Apply(t.Context(), c.WithFieldManager("other"), widget); err != nil {
		t.Errorf("the new plural: %v", err)
	}
}

// Regression: each deletion of an object that was gone already made the next write ask discovery again.
func TestPluralOutlivesA404OfAnObject(t *testing.T) {
	t.Parallel()
	server := &kindServer{plurals: map[string]string{"Widget": "widgets"}}
	c := NewClientFromHandler(server)
	for range 3 {
		gone := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "gone"},
		}}
		if err := c.Delete(t.Context(), gone); !IsNotFound(err) {
			t.Errorf("the deletion of what is gone: %v", err)
		}
	}
	if n := server.count(wire.VerbGet); n != 1 {
		t.Errorf("the resource of one kind was looked up %d times", n)
	}
}

// TestAnUnknownKindIsAnErrorBeforeTheWrite checks what no write must reach.
func TestAnUnknownKindIsAnErrorBeforeTheWrite(t *testing.T) {
	t.Parallel()
	server := &kindServer{plurals: map[string]string{"Widget": "widgets"}}
	c := NewClientFromHandler(server)
	for kind, want := range map[string]string{"Gizmo": "the server has no kind Gizmo in example.com/v1", "": "its apiVersion or its kind is empty"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": "w"}}}
		for verb, write := range map[string]func() error{
			"apply":  func() error { _, err := Apply(t.Context(), c, o); return err },
			"create": func() error { _, err := Create[Object](t.Context(), c, o); return err },
			"delete": func() error { return c.Delete(t.Context(), o) },
		} {
			if err := write(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of the kind %q: %v, want %q", verb, kind, err, want)
			}
		}
	}
	var none *unstructured.Unstructured
	if _, err := Apply(t.Context(), c, none); err == nil {
		t.Error("nil is applied")
	}
	if _, err := Apply[Object](t.Context(), c, nil); err == nil {
		t.Error("a nil interface is applied")
	}
	if n := len(server.requests) - server.count(wire.VerbGet); n != 0 {
		t.Errorf("%d writes were sent", n)
	}
}

// kindServer is a server of the kinds of example.com/v1 and of ConfigMaps. It answers each write.
type kindServer struct {
	plurals  map[string]string
	requests []*wire.Request
}

func (s *kindServer) count(verb wire.Verb) (n int) {
	for _, r := range s.requests {
		if r.Verb == verb {
			n++
		}
	}
	return n
}

func (s *kindServer) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	s.requests = append(s.requests, r)
	if r.Verb == wire.VerbGet && r.Resource.Plural == "" {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "example.com/v1"}
		for kind, plural := range s.plurals {
			list.APIResources = append(list.APIResources,
				metav1.APIResource{Name: plural + "/status", Kind: kind, Namespaced: true}, metav1.APIResource{Name: plural, Kind: kind, Namespaced: true})
		}
		body, err := json.Marshal(list)
		return &wire.Response{Body: body}, err
	}
	if r.Resource.Plural != "configmaps" && s.plurals[r.Resource.Kind] != r.Resource.Plural {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound} // as a server that does not know the path
	}
	if r.Name == "gone" {
		return notFound(ctx, r)
	}
	if r.Verb == wire.VerbDelete {
		return &wire.Response{Body: []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`)}, nil
	}
	gv := schema.GroupVersion{Group: r.Resource.Group, Version: r.Resource.Version}
	body, err := json.Marshal(map[string]any{
		"apiVersion": gv.String(), "kind": r.Resource.Kind,
		"metadata": map[string]any{"namespace": "ns", "name": "w", "uid": "u", "resourceVersion": "1"}, "data": map[string]any{"answer": "yes"},
	})
	return &wire.Response{Body: body}, err
}
