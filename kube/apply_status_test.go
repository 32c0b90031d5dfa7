package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube/wire"
)

// gadgetServer serves one gadget as an API server does, as far as its status is concerned.
type gadgetServer struct {
	t       *testing.T
	object  gadget
	version int
	// writes are the statuses that were stored. reads counts the live reads.
	writes []bool
	reads  int
	// beforeWrite runs before the n-th attempt to write, which is the first for 1.
	beforeWrite func(s *gadgetServer, n int)
	attempts    int
}

func newGadgetServer(t *testing.T) *gadgetServer {
	s := &gadgetServer{t: t, object: gadget{ObjectMeta: named("ns", "g")}}
	s.object.UID, s.object.Generation = "u", 1
	s.change(func(*gadget) {})
	return s
}

func (s *gadgetServer) change(f func(*gadget)) {
	f(&s.object)
	s.version++
	s.object.ResourceVersion = fmt.Sprint(s.version)
}

// wroteStatus records that a manager applied the status.
func (s *gadgetServer) wroteStatus(manager string) {
	s.change(func(g *gadget) {
		for i, e := range g.ManagedFields {
			if e.Manager == manager {
				g.ManagedFields = append(g.ManagedFields[:i:i], g.ManagedFields[i+1:]...)
				break
			}
		}
		at := metav1.Unix(int64(s.version), 0)
		g.ManagedFields = append(g.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", Time: &at,
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:ready":{}}}`)},
		})
	})
}

func (s *gadgetServer) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	if r.Verb == wire.VerbGet {
		if !r.Live {
			s.t.Error("it was read in a way that a cache may answer")
		}
		s.reads++
	} else {
		s.attempts++
		if s.beforeWrite != nil {
			s.beforeWrite(s, s.attempts)
		}
		var sent gadget
		if err := Unmarshal(r.Body, &sent); err != nil {
			s.t.Error(err)
		}
		switch {
		case r.Preconditions.UID != sent.UID || r.Preconditions.ResourceVersion != sent.ResourceVersion:
			s.t.Errorf("the preconditions %+v are not those of the body %s", r.Preconditions, r.Body)
		case sent.UID != s.object.UID:
			return uidChanged(ctx, r)
		case sent.ResourceVersion != "" && sent.ResourceVersion != s.object.ResourceVersion:
			return versionChanged(ctx, r)
		}
		s.object.Status = sent.Status
		s.writes = append(s.writes, sent.Status.Ready)
		s.wroteStatus(r.Query.Get("fieldManager"))
	}
	body, err := Marshal(s.object)
	return &wire.Response{Code: http.StatusOK, Body: body}, err
}

// read returns the gadget as a reconcile reads it.
func (s *gadgetServer) read() *gadget {
	g := s.object
	return &g
}

// Bug: the second status in one reconcile conflicted with the first.
func TestLaterStatusUsesTheVersionOfTheEarlierOne(t *testing.T) {
	t.Parallel()
	s := newGadgetServer(t)
	c := NewClientFromHandler(s)
	g := s.read()
	for _, ready := range []bool{false, true, false} {
		g.Status.Ready = ready
		if err := c.ApplyStatus(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	if s.attempts != 3 || s.reads != 0 || g.ResourceVersion != s.object.ResourceVersion {
		t.Errorf("%d attempts and %d reads, at version %s of %s", s.attempts, s.reads, g.ResourceVersion, s.object.ResourceVersion)
	}
	s.change(func(*gadget) {})
	if _, err := Everywhere[gadget](c).Replace(t.Context(), g); !IsConflict(err) {
		t.Errorf("a replace of an object that has changed since: %v", err)
	}
}

// Bug: the status of an object that others change often was never written.
func TestStatusAfterAConflict(t *testing.T) {
	t.Parallel()
	annotate := func(g *gadget) { g.Annotations = map[string]string{"heartbeat": "1"} }
	for name, test := range map[string]struct {
		between  func(s *gadgetServer) // after the read
		before   func(s *gadgetServer, n int)
		written  bool
		attempts int
		earlier  bool // this manager has applied the status before
	}{
		"others changed the metadata":    {between: func(s *gadgetServer) { s.change(annotate) }, written: true, attempts: 2},
		"so they did after a status":     {between: func(s *gadgetServer) { s.change(annotate) }, written: true, attempts: 2, earlier: true},
		"another manager has a status":   {between: func(s *gadgetServer) { s.wroteStatus("other") }, written: true, attempts: 2},
		"this manager wrote the status":  {between: func(s *gadgetServer) { s.wroteStatus("yare") }, attempts: 1, earlier: true},
		"this manager wrote a first one": {between: func(s *gadgetServer) { s.wroteStatus("yare") }, attempts: 1},
		"the spec changed": {between: func(s *gadgetServer) {
			s.change(func(g *gadget) { g.Generation++ })
		}, attempts: 1},
		"no generation is counted": {between: func(s *gadgetServer) { s.change(func(g *gadget) { g.Generation = 0 }) }, attempts: 1},
		"made anew":                {between: func(s *gadgetServer) { s.change(func(g *gadget) { g.UID = "v" }) }, attempts: 1},
		"twice": {before: func(s *gadgetServer, n int) {
			if n < 3 {
				s.change(annotate)
			}
		}, written: true, attempts: 3},
		"again and again": {before: func(s *gadgetServer, _ int) { s.change(annotate) }, attempts: statusAttempts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGadgetServer(t)
			if test.earlier {
				s.wroteStatus("yare")
			}
			g := s.read()
			read := g.ResourceVersion
			if test.between != nil {
				test.between(s)
			}
			s.beforeWrite = test.before
			c := NewClientFromHandler(s)
			g.Status.Ready = true
			err := c.ApplyStatus(t.Context(), g)
			if (err == nil) != test.written || err != nil && !IsConflict(err) {
				t.Errorf("the error is %v", err)
			}
			if s.attempts != test.attempts {
				t.Errorf("%d attempts, want %d", s.attempts, test.attempts)
			}
			if g.ResourceVersion != read {
				t.Errorf("the object has the version %s, so that a replace would undo what others did", g.ResourceVersion)
			}
			if !test.written {
				return
			}
			s.beforeWrite = nil
			g.Status.Ready = false
			if err := c.ApplyStatus(t.Context(), g); err != nil {
				t.Errorf("a further status: %v", err)
			}
			if diff := cmp.Diff([]bool{true, false}, s.writes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What was not written changes nothing in the object.
func TestStatusThatWasNotWritten(t *testing.T) {
	t.Parallel()
	s := newGadgetServer(t)
	g := s.read()
	want := *g
	if err := NewClientFromHandler(s).ApplyStatus(t.Context(), g, DryRun()); err != nil {
		t.Fatal(err)
	}
	broken := NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		return nil, errors.New("broken")
	}))
	if err := broken.ApplyStatus(t.Context(), g); err == nil {
		t.Error("there is no error")
	}
	cached := NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		s.wroteStatus("yare")
		body, err := Marshal(s.object)
		return &wire.Response{Code: http.StatusOK, Body: body, Cached: true}, err
	}))
	if err := cached.ApplyStatus(t.Context(), g); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(&want, g); diff != "" {
		t.Error(diff)
	}
}

// Bug: a status that was read travelled in the apply of the whole object. The status of a foreign kind was sent, whether it
// was set or not, and whether it has a subresource or not.
func TestApplySendsNoStatus(t *testing.T) {
	t.Parallel()
	foreign := &foreignGadget{ObjectMeta: named("ns", "g"), Status: gadgetStatus{Ready: true}}
	dynamic := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "other.example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g", "namespace": "ns"}, "status": map[string]any{"ready": true},
	}}
	const foreignBody = `{"apiVersion":"other.example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"ns"}`
	for name, test := range map[string]struct {
		object Object
		// served are the resources that discovery shows. It is not asked if there are none.
		served string
		want   string
	}{
		"of a custom resource": {&gadget{ObjectMeta: named("ns", "g"), Status: gadgetStatus{Ready: true}}, "",
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"ns"},"spec":{"size":0}}`},
		"of another project's, which was not set":             {&foreignGadget{ObjectMeta: named("ns", "g")}, "", foreignBody + `}`},
		"of another project's":                                {foreign, "gadgets gadgets/status", foreignBody + `}`},
		"but of one without a subresource":                    {foreign, "gadgets gadgets/scale", foreignBody + `,"status":{"ready":true}}`},
		"but of one that is not served":                       {foreign, "others others/status", foreignBody + `,"status":{"ready":true}}`},
		"of an unstructured object":                           {dynamic, "gadgets gadgets/status", foreignBody + `}`},
		"but of an unstructured object without a subresource": {dynamic, "gadgets", foreignBody + `,"status":{"ready":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := []wire.HandlerFunc{answer(`{}`), answer(`{}`)}
			if test.served != "" {
				list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}}
				for _, served := range strings.Fields(test.served) {
					list.APIResources = append(list.APIResources, metav1.APIResource{Name: served, Kind: "Gadget", Namespaced: true})
				}
				body, err := Marshal(list)
				if err != nil {
					t.Fatal(err)
				}
				steps = append([]wire.HandlerFunc{answer(string(body))}, steps...)
				if test.object == Object(dynamic) { // its plural is looked for first
					steps = append([]wire.HandlerFunc{answer(string(body))}, steps...)
				}
			}
			s := scripted(t, steps...)
			c := NewClientFromHandler(s)
			for range 2 {
				if _, err := Apply(t.Context(), c, test.object); err != nil {
					t.Fatal(err)
				}
			}
			for _, sent := range s.got[len(s.got)-2:] {
				if diff := cmp.Diff(decoded(t, test.want), decoded(t, string(sent.Body))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Where discovery is refused, nobody knows whether a status has a subresource. So the status is sent. A server that cannot be
// reached gets one request.
func TestApplyOfAStatusWithoutDiscovery(t *testing.T) {
	t.Parallel()
	foreign := &foreignGadget{ObjectMeta: named("ns", "g"), Status: gadgetStatus{Ready: true}}
	forbidden := func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusForbidden}
	}
	s := scripted(t, forbidden, answer(`{}`))
	if _, err := Apply(t.Context(), NewClientFromHandler(s), foreign); err != nil || !strings.Contains(string(s.got[1].Body), `"status":{"ready":true}`) {
		t.Errorf("forbidden: %v, sent %v", err, s.got)
	}
	s = scripted(t, func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Err: errors.New("no route")}
	})
	if _, err := Apply(t.Context(), NewClientFromHandler(s), foreign); !IsUnreachable(err) {
		t.Errorf("not reached: %v", err)
	}
}

// A foreign kind may get another definition, with another subresource.
func TestSubresourceIsForgottenAfterA404(t *testing.T) {
	t.Parallel()
	foreign := &foreignGadget{ObjectMeta: named("ns", "g"), Status: gadgetStatus{Ready: true}}
	served := func(subresource string) wire.HandlerFunc {
		return answer(`{"kind":"APIResourceList","resources":[{"name":"gadgets","kind":"Gadget"},{"name":"gadgets/` + subresource + `","kind":"Gadget"}]}`)
	}
	gone := func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound}
	}
	s := scripted(t, served("status"), gone, served("scale"), answer(`{}`))
	gadgets := Everywhere[foreignGadget](NewClientFromHandler(s))
	if _, err := gadgets.Apply(t.Context(), foreign); !IsNoResource(err) {
		t.Errorf("not served: %v", err)
	}
	if _, err := gadgets.Apply(t.Context(), foreign); err != nil || !strings.Contains(string(s.got[3].Body), `"status"`) {
		t.Errorf("the new definition: %v, sent %v", err, s.got)
	}
}

type foreignGadgetSpec struct{}

func (foreignGadgetSpec) Definition() Definition {
	return Definition{Group: "other.example.com", Version: "v1", Kind: "Gadget", Foreign: true}
}

type foreignGadget = CustomResource[foreignGadgetSpec, gadgetStatus]
