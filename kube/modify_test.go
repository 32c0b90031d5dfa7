package kube

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

const storedGadget = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"namespace":"ns","name":"g","uid":"u","resourceVersion":"7"},"spec":{"size":1,"parts":{"a":"1","b":"2"}}}`

// A conflict is answered by a live read and another call. An object that is as it should be is not
// sent.
func TestModify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conflict := refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		newer := strings.NewReplacer(`"7"`, `"8"`, `"size":1`, `"size":4`).Replace(storedGadget)
		s := scripted(t, answer(storedGadget), conflict, answer(newer), answer(newer), answer(storedGadget))
		api := Namespaced[gadget](NewClientFromHandler(s), "ns")
		double := func(g *gadget) error {
			g.Spec.Size *= 2
			g.ResourceVersion = "" // it is a condition all the same
			return nil
		}
		if _, err := api.Modify(t.Context(), "g", double); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			live, update bool
			version      string
			size         int32
		}{{}, {update: true, version: "7", size: 2}, {live: true}, {update: true, version: "8", size: 8}} {
			r := s.got[i]
			var sent gadget
			if want.update {
				if err := Unmarshal(r.Body, &sent); err != nil {
					t.Fatal(err)
				}
			}
			if r.Live != want.live || (r.Verb == wire.VerbUpdate) != want.update || r.Preconditions.ResourceVersion != want.version ||
				sent.ResourceVersion != want.version || sent.Spec.Size != want.size {
				t.Errorf("request %d is %+v with %s, want %+v", i, r, r.Body, want)
			}
		}
		if g, err := api.Modify(t.Context(), "g", func(*gadget) error { return nil }); err != nil || g.Spec.Size != 1 {
			t.Errorf("a modification that changes nothing: %+v, %v", g, err)
		}
	})
}

func TestModifyEnds(t *testing.T) {
	t.Parallel()
	conflict := refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
	grow := func(g *gadget) error { g.Spec.Size++; return nil }
	synctest.Test(t, func(t *testing.T) {
		var steps []wire.HandlerFunc
		for range modifyAttempts {
			steps = append(steps, answer(storedGadget), conflict)
		}
		if _, err := Namespaced[gadget](NewClientFromHandler(scripted(t, steps...)), "ns").Modify(t.Context(), "g", grow); !IsConflict(err) {
			t.Errorf("the error of the last attempt is %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := scripted(t, answer(storedGadget), func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			cancel()
			return conflict(ctx, r)
		})
		_, err := Namespaced[gadget](NewClientFromHandler(s), "ns").Modify(ctx, "g", grow)
		if !errors.Is(err, context.Canceled) || !IsConflict(err) {
			t.Errorf("the error after the end of the context is %v", err)
		}
	})
	mine := errors.New("mine")
	s := scripted(t, answer(storedGadget), answer(storedGadget), answer(storedGadget), answer(storedGadget),
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
	api := Namespaced[gadget](NewClientFromHandler(s), "ns")
	for _, test := range []struct {
		api    API[gadget]
		modify func(*gadget) error
		want   string
	}{
		{api, func(*gadget) error { return mine }, "mine"},
		{api, func(g *gadget) error { g.Name = "h"; return nil }, "a write changes neither namespace, name nor uid"},
		{api, func(g *gadget) error { g.Status.Ready = true; return nil }, "through API.Status"},
		{api.Status(), grow, "spec has changed, which a write of the status leaves alone"},
		{api, grow, "not found"},
		{api, nil, "the function is nil"},
		{Everywhere[gadget](NewClientFromHandler(s)), grow, "the namespace is missing"},
	} {
		_, err := test.api.Modify(t.Context(), "g", test.modify)
		wantError(t, err, test.want)
	}
}

func TestPatchDifference(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T) *gadget {
		g := new(gadget)
		if err := Unmarshal([]byte(storedGadget), g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, test := range []struct {
		name   string
		change func(*gadget)
		status bool
		want   string
	}{
		{"nothing", func(*gadget) {}, false, ""},
		{"what the server sets", func(g *gadget) {
			g.ResourceVersion = "9"
			g.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		}, false, ""},
		{"a field", func(g *gadget) { g.Spec.Size = 0 }, false, `{"metadata":{"uid":"u"},"spec":{"size":0}}`},
		{
			"members of a map", func(g *gadget) { delete(g.Spec.Parts, "a"); g.Spec.Parts["c"] = "3" }, false,
			`{"metadata":{"uid":"u"},"spec":{"parts":{"a":null,"c":"3"}}}`,
		},
		{"the last member", func(g *gadget) { clear(g.Spec.Parts) }, false, `{"metadata":{"uid":"u"},"spec":{"parts":null}}`},
		{
			"a list", func(g *gadget) { g.Finalizers = []string{"f"} }, false,
			`{"metadata":{"finalizers":["f"],"resourceVersion":"7","uid":"u"}}`,
		},
		{"the status", func(g *gadget) { g.Status.Ready = true }, true, `{"metadata":{"uid":"u"},"status":{"ready":true}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t)
			if test.want != "" {
				s.steps = append(s.steps, answer(storedGadget))
			}
			api := Everywhere[gadget](NewClientFromHandler(s).WithFieldManager("me"))
			if test.status {
				api = api.Status()
			}
			before, after := read(t), read(t)
			test.change(after)
			if _, err := api.PatchDifference(t.Context(), before, after); err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				return
			}
			r := s.got[0]
			if diff := cmp.Diff(test.want, string(r.Body)); diff != "" || r.ContentType != wire.ContentMergePatch || r.Query.Get("fieldManager") != "me" ||
				r.Preconditions.UID != "u" || r.Ref().Namespace != "ns" || r.Name != "g" || (r.Subresource == "status") != test.status {
				t.Errorf("sent %+v, body (-want +got):\n%s", r, diff)
			}
		})
	}
	api := Everywhere[gadget](NewClientFromHandler(scripted(t)))
	for want, change := range map[string]func(before, after *gadget){
		"kube.JSONPatch":    func(_, after *gadget) { after.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} },
		"has no uid":        func(before, after *gadget) { before.UID, after.UID = "", "" },
		"neither":           func(_, after *gadget) { after.UID = "v" },
		"API.Status":        func(_, after *gadget) { after.Status.Ready = true },
		"has the namespace": func(before, after *gadget) {},
	} {
		before, after := read(t), read(t)
		change(before, after)
		var err error
		if want == "has the namespace" {
			_, err = Everywhere[corev1.Node](NewClientFromHandler(nil)).PatchDifference(t.Context(),
				&corev1.Node{ObjectMeta: before.ObjectMeta}, &corev1.Node{ObjectMeta: after.ObjectMeta})
		} else {
			_, err = api.PatchDifference(t.Context(), before, after)
		}
		wantError(t, err, want)
	}
	_, err := api.PatchDifference(t.Context(), nil, read(t))
	wantError(t, err, "the object is nil")
}

// TestModifyWithAnUnknownOutcomeIsNotRepeated loses the answer to the first PUT, which the server has carried out.
// Somebody else changes a label, so the repetition of the PUT is refused. Modify called modify with its own result, and
// stored twice what was asked for once.
func TestModifyWithAnUnknownOutcomeIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conflict := refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		mine := strings.NewReplacer(`"resourceVersion":"7"`, `"resourceVersion":"9","labels":{"by":"somebody"}`, `"size":1`, `"size":2`).Replace(storedGadget)
		s := &script{t: t, steps: []wire.HandlerFunc{answer(storedGadget), breakConnection(true), conflict, answer(mine), answer(mine), answer(mine)}}
		client := NewClientFromHandler(retry{next: s, timeout: 30 * time.Second})
		_, err := Namespaced[gadget](client, "ns").Modify(t.Context(), "g", func(g *gadget) error { g.Spec.Size++; return nil })
		last := s.got[len(s.got)-1]
		if last.Verb == wire.VerbUpdate && strings.Contains(string(last.Body), `"size":3`) {
			t.Errorf("size 1 was to become 2, the server has had 2, and Modify has sent 3 (%v):\n%s", err, s)
		}
	})
}

// TestConflictOfTheFunctionItselfEndsModify returns a conflict of another write from modify. Modify called modify five more
// times.
func TestConflictOfTheFunctionItselfEndsModify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		for range 10 {
			s.steps = append(s.steps, answer(storedGadget))
		}
		calls := 0
		_, err := Namespaced[gadget](NewClientFromHandler(s), "ns").Modify(t.Context(), "g", func(*gadget) error {
			calls++
			return &wire.Error{Verb: wire.VerbUpdate, Code: http.StatusConflict, Answer: metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "of something else"}}
		})
		if calls != 1 {
			t.Errorf("modify was called %d times although it returned an error: %v", calls, err)
		}
	})
}
