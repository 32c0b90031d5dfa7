package kube

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube/wire"
)

// What each write sends.
func TestWrites(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	configMap := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: named("ns", "c"), Data: map[string]string{"a": "b"}}
	}
	read := func() *corev1.ConfigMap {
		c := configMap()
		c.UID, c.ResourceVersion = "u", "7"
		return c
	}
	const kind = `{"apiVersion":"v1","kind":"ConfigMap",`
	type want struct {
		Verb          wire.Verb
		Subresource   string
		Name          string
		Query         url.Values
		Preconditions wire.Preconditions
	}
	manager := url.Values{"fieldManager": {"me"}}
	for _, test := range []struct {
		name string
		do   func(*Client) error
		want want
		body string
	}{
		{"create", func(c *Client) error { _, err := Everywhere[corev1.ConfigMap](c).Create(ctx, configMap()); return err },
			want{Verb: wire.VerbCreate, Query: manager}, kind + `"metadata":{"name":"c","namespace":"ns"},"data":{"a":"b"}}`},
		{"create with options", func(c *Client) error {
			_, err := Everywhere[corev1.ConfigMap](c).Create(ctx, configMap(), DryRun(), Strict(), FieldManager("other"))
			return err
		}, want{Verb: wire.VerbCreate, Query: url.Values{"fieldManager": {"other"}, "dryRun": {"All"}, "fieldValidation": {"Strict"}}},
			kind + `"metadata":{"name":"c","namespace":"ns"},"data":{"a":"b"}}`},
		{"create with a generated name", func(c *Client) error {
			_, err := Namespaced[corev1.ConfigMap](c, "ns").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}})
			return err
		}, want{Verb: wire.VerbCreate, Query: manager}, kind + `"metadata":{"generateName":"c-"}}`},
		{"replace", func(c *Client) error { _, err := Everywhere[corev1.ConfigMap](c).Replace(ctx, read()); return err },
			want{Verb: wire.VerbUpdate, Name: "c", Query: manager, Preconditions: wire.Preconditions{UID: "u", ResourceVersion: "7"}},
			kind + `"metadata":{"name":"c","namespace":"ns","uid":"u","resourceVersion":"7"},"data":{"a":"b"}}`},
		{"replace a status", func(c *Client) error {
			_, err := Everywhere[gadget](c).Status().Replace(ctx, &gadget{ObjectMeta: named("ns", "g"), Status: gadgetStatus{Ready: true}})
			return err
		}, want{Verb: wire.VerbUpdate, Name: "g", Subresource: "status", Query: manager},
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"ns"},"spec":{"size":0},"status":{"ready":true}}`},
		{"merge patch", func(c *Client) error {
			_, err := Namespaced[corev1.ConfigMap](c, "ns").Patch(ctx, "c", MergePatch(map[string]any{"data": nil}))
			return err
		}, want{Verb: wire.VerbPatch, Name: "c", Query: manager}, `{"data":null}`},
		{"JSON patch", func(c *Client) error {
			_, err := Namespaced[corev1.ConfigMap](c, "ns").Patch(ctx, "c", JSONPatch(TestAt("/a", nil), AddAt("/b", ""), ReplaceAt("/c", 0), RemoveAt("/d")))
			return err
		}, want{Verb: wire.VerbPatch, Name: "c", Query: manager},
			`[{"op":"test","path":"/a","value":null},{"op":"add","path":"/b","value":""},{"op":"replace","path":"/c","value":0},{"op":"remove","path":"/d"}]`},
		{"patch a status", func(c *Client) error {
			_, err := Namespaced[corev1.Pod](c, "ns").Status().Patch(ctx, "p", StrategicPatch(map[string]any{"status": map[string]any{}}))
			return err
		}, want{Verb: wire.VerbPatch, Name: "p", Subresource: "status", Query: manager}, `{"status":{}}`},
		{"apply", func(c *Client) error { _, err := Apply(ctx, c, configMap()); return err },
			want{Verb: wire.VerbPatch, Name: "c", Query: url.Values{"fieldManager": {"me"}, "force": {"true"}}},
			kind + `"metadata":{"name":"c","namespace":"ns"},"data":{"a":"b"}}`},
		{"apply without force", func(c *Client) error { _, err := Apply(ctx, c, configMap(), NoForce(), DryRun()); return err },
			want{Verb: wire.VerbPatch, Name: "c", Query: url.Values{"fieldManager": {"me"}, "dryRun": {"All"}}},
			kind + `"metadata":{"name":"c","namespace":"ns"},"data":{"a":"b"}}`},
		{"apply a status", func(c *Client) error {
			g := &gadget{ObjectMeta: named("ns", "g"), Status: gadgetStatus{Ready: true}}
			g.UID, g.ResourceVersion = "u", "7"
			return c.ApplyStatus(ctx, g)
		}, want{Verb: wire.VerbPatch, Name: "g", Subresource: "status", Query: url.Values{"fieldManager": {"me"}, "force": {"true"}}, Preconditions: wire.Preconditions{UID: "u", ResourceVersion: "7"}},
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g","namespace":"ns","resourceVersion":"7","uid":"u"},"status":{"ready":true}}`},
		{"get scale", func(c *Client) error { _, err := Namespaced[appsv1.Deployment](c, "ns").GetScale(ctx, "d"); return err },
			want{Verb: wire.VerbGet, Name: "d", Subresource: "scale"}, ``},
		{"set scale", func(c *Client) error {
			_, err := Namespaced[appsv1.Deployment](c, "ns").SetScale(ctx, "d", 0)
			return err
		}, want{Verb: wire.VerbPatch, Name: "d", Subresource: "scale", Query: manager}, `{"spec":{"replicas":0}}`},
		{"delete", func(c *Client) error { return Namespaced[corev1.ConfigMap](c, "ns").Delete(ctx, "c") },
			want{Verb: wire.VerbDelete, Name: "c"}, ``},
		{"delete with options", func(c *Client) error {
			return Namespaced[corev1.ConfigMap](c, "ns").Delete(ctx, "c", RequireUID("u"), RequireResourceVersion("7"),
				Propagation(metav1.DeletePropagationForeground), GracePeriod(5*time.Second), DryRun())
		}, want{Verb: wire.VerbDelete, Name: "c", Preconditions: wire.Preconditions{UID: "u", ResourceVersion: "7"}},
			`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5,"preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Foreground","dryRun":["All"]}`},
		{"Bug: half a second of grace was none", func(c *Client) error {
			return Namespaced[corev1.Pod](c, "ns").Delete(ctx, "p", GracePeriod(500*time.Millisecond))
		}, want{Verb: wire.VerbDelete, Name: "p"}, `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":1}`},
		{"no grace", func(c *Client) error {
			return Namespaced[corev1.Pod](c, "ns").Delete(ctx, "p", GracePeriod(0))
		}, want{Verb: wire.VerbDelete, Name: "p"}, `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`},
		{"delete what was read", func(c *Client) error { return c.Delete(ctx, read()) },
			want{Verb: wire.VerbDelete, Name: "c", Preconditions: wire.Preconditions{UID: "u"}},
			`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"}}`},
		{"delete what was not read", func(c *Client) error { return c.Delete(ctx, configMap()) }, want{Verb: wire.VerbDelete, Name: "c"}, ``},
		{"delete all", func(c *Client) error {
			return Namespaced[corev1.ConfigMap](c, "ns").DeleteAll(ctx, []Selector{Label("a", "b")})
		}, want{Verb: wire.VerbDeleteCollection, Query: url.Values{"labelSelector": {"a=b"}}}, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t, answer(`{}`))
			if err := test.do(NewClientFromHandler(s).WithFieldManager("me")); err != nil {
				t.Fatal(err)
			}
			r := s.got[0]
			if len(r.Query) == 0 {
				r.Query = nil
			}
			got := want{Verb: r.Verb, Subresource: r.Subresource, Name: r.Name, Query: r.Query, Preconditions: r.Preconditions}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if r.Namespace != "ns" {
				t.Errorf("in the namespace %q", r.Namespace)
			}
			if test.body == "" || len(r.Body) == 0 {
				if string(r.Body) != test.body {
					t.Errorf("sent %s, want %s", r.Body, test.body)
				}
				return
			}
			var wantBody, gotBody any
			if err := Unmarshal([]byte(test.body), &wantBody); err != nil {
				t.Fatal(err)
			}
			if err := Unmarshal(r.Body, &gotBody); err != nil {
				t.Fatalf("%v in %s", err, r.Body)
			}
			if diff := cmp.Diff(wantBody, gotBody); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A write never changes the object that is passed in. Bug: an unstructured object, and an object
// that embeds a pointer, was given its kind.
func TestWritesLeaveTheirArgumentAlone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	gadgets, err := ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	loose := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "g", "namespace": "ns", "uid": "u"}}}
	}
	pod := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
	}
	pointed := func() *pointerWrapped {
		return &pointerWrapped{&corev1.ConfigMap{ObjectMeta: named("ns", "c")}}
	}
	s := answer(`{"metadata":{"name":"other"}}`)
	c := NewClientFromHandler(s)
	check := func(name string, got, want any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s changed its argument: %s", name, diff)
		}
	}
	for name, do := range map[string]func(*unstructured.Unstructured) (*unstructured.Unstructured, error){
		"create": func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return Dynamic(c, gadgets, "").Create(ctx, u)
		},
		"replace": func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return Dynamic(c, gadgets, "").Replace(ctx, u)
		},
		"apply": func(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return Dynamic(c, gadgets, "").Apply(ctx, u)
		},
	} {
		u := loose()
		_, err := do(u)
		check(name+" unstructured", u, loose(), err)
	}
	for name, do := range map[string]func(*corev1.Pod) error{
		"create":  func(p *corev1.Pod) error { _, err := Everywhere[corev1.Pod](c).Create(ctx, p); return err },
		"replace": func(p *corev1.Pod) error { _, err := Everywhere[corev1.Pod](c).Replace(ctx, p); return err },
		"apply": func(p *corev1.Pod) error {
			entries := p.ManagedFields
			p.ManagedFields = nil
			defer func() { p.ManagedFields = entries }()
			_, err := Apply(ctx, c, p)
			return err
		},
		"apply status": func(p *corev1.Pod) error { return c.ApplyStatus(ctx, p) },
		"delete":       func(p *corev1.Pod) error { return c.Delete(ctx, p) },
	} {
		p := pod()
		check(name, p, pod(), do(p))
	}
	p := pointed()
	_, err = Everywhere[pointerWrapped](c).Create(ctx, p)
	check("create of a wrapped pointer", p.ConfigMap, pointed().ConfigMap, err)
}

// Both ways to delete return the same error for an object that is gone. The error can be
// ignored. Bug: one of them did not return the error.
func TestDeleteOfWhatIsGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		step wire.HandlerFunc
		gone bool
	}{
		{"gone", notFound, true},
		{"Bug: another of its name, in the words of the registry", uidChanged, true},
		{"another of its name, in the words of the storage", refuse(409, metav1.StatusReasonConflict, "Precondition failed: UID in precondition: u, UID in object meta: v"), true},
		{"another version", versionChanged, false},
		{"no such resource", noResource, false},
		{"forbidden", refuse(403, metav1.StatusReasonForbidden, "no"), false},
	} {
		for way, remove := range map[string]func(*Client) error{
			"what was read": func(c *Client) error {
				return c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}})
			},
			"what was not read": func(c *Client) error { return c.Delete(t.Context(), &corev1.Pod{ObjectMeta: named("ns", "p")}) },
			"by name":           func(c *Client) error { return Namespaced[corev1.Pod](c, "ns").Delete(t.Context(), "p") },
		} {
			t.Run(test.name+", "+way, func(t *testing.T) {
				t.Parallel()
				err := remove(NewClientFromHandler(scripted(t, test.step)))
				if err == nil {
					t.Fatal("there is no error")
				}
				if gone := IgnoreNotFound(err) == nil; gone != test.gone {
					t.Errorf("IgnoreNotFound(%v) is %v", err, IgnoreNotFound(err))
				}
			})
		}
	}
}

// Bug: IsNotFound included a resource that the server does not know, so that a missing
// CustomResourceDefinition looked as if its objects had been deleted.
func TestIsNotFoundIsOfAnObject(t *testing.T) {
	t.Parallel()
	_, missing := notFound(t.Context(), requestFor(wire.VerbGet))
	_, unknown := noResource(t.Context(), requestFor(wire.VerbGet))
	if !IsNotFound(missing) || IsNoResource(missing) || IsNotFound(unknown) || !IsNoResource(unknown) {
		t.Errorf("of an object: %t, %t; of a resource: %t, %t",
			IsNotFound(missing), IsNoResource(missing), IsNotFound(unknown), IsNoResource(unknown))
	}
}

// A refused uid is recognized in a delete as in an apply, but not beside other errors.
func TestIsUIDConflict(t *testing.T) {
	t.Parallel()
	invalid := func(causes ...string) wire.HandlerFunc {
		return refuse(422, metav1.StatusReasonInvalid, "invalid", func(e *wire.Error) {
			for _, field := range causes {
				e.Answer.Details.Causes = append(e.Answer.Details.Causes, metav1.StatusCause{Field: field})
			}
		})
	}
	for name, test := range map[string]struct {
		step wire.HandlerFunc
		want bool
	}{
		"delete":             {uidChanged, true},
		"apply":              {invalid("metadata.uid"), true},
		"apply, and more":    {invalid("metadata.uid", "spec"), false},
		"invalid":            {invalid("spec"), false},
		"invalid, no causes": {invalid(), false},
		"version":            {versionChanged, false},
		"not found":          {notFound, false},
	} {
		_, err := test.step(t.Context(), requestFor(wire.VerbPatch))
		if got := IsUIDConflict(err); got != test.want {
			t.Errorf("%s: IsUIDConflict(%v) = %t", name, err, got)
		}
	}
}

// The name of a create is in its body.
func TestObjectName(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		r    *wire.Request
		want string
	}{
		{&wire.Request{Verb: wire.VerbGet, Name: "a"}, "a"},
		{&wire.Request{Verb: wire.VerbCreate, Body: []byte(`{"metadata":{"name":"b"}}`)}, "b"},
		{&wire.Request{Verb: wire.VerbCreate, Name: "a", Subresource: "eviction", Body: []byte(`{"metadata":{"name":"b"}}`)}, "a"},
		{&wire.Request{Verb: wire.VerbCreate, Body: []byte(`{"metadata":{"generateName":"b-"}}`)}, ""},
		{&wire.Request{Verb: wire.VerbCreate, Body: []byte(`no JSON`)}, ""},
		{&wire.Request{Verb: wire.VerbDeleteCollection}, ""},
	} {
		if got := test.r.ObjectName(); got != test.want {
			t.Errorf("the name of %s %s is %q, want %q", test.r.Verb, test.r.Body, got, test.want)
		}
	}
}

func TestScaleIsDecoded(t *testing.T) {
	t.Parallel()
	c := NewClientFromHandler(scripted(t, answer(`{"metadata":{"name":"d"},"spec":{"replicas":3},"status":{"replicas":2,"selector":"a=b"}}`)))
	got, err := Namespaced[appsv1.Deployment](c, "ns").GetScale(t.Context(), "d")
	if err != nil || got.Spec.Replicas != 3 || got.Status.Replicas != 2 || got.Status.Selector != "a=b" {
		t.Errorf("got %+v: %v", got, err)
	}
}

func TestDeleteAllInTheNamespacesOfTheClient(t *testing.T) {
	t.Parallel()
	s := scripted(t, done, done)
	if err := Everywhere[corev1.Pod](NewClientFromHandler(s).InNamespaces("a", "b")).DeleteAll(t.Context(), []Selector{Everything()}); err != nil {
		t.Fatal(err)
	}
	if s.got[0].Namespace != "a" || s.got[1].Namespace != "b" {
		t.Errorf("deleted %s", s)
	}
}

// A review is a question, not an object: it has no name.
func TestReviewsHaveNoName(t *testing.T) {
	t.Parallel()
	s := scripted(t, answer(`{"status":{"allowed":true}}`))
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane"}}
	got, err := Everywhere[authorizationv1.SubjectAccessReview](NewClientFromHandler(s)).Create(t.Context(), review)
	if err != nil || !got.Status.Allowed {
		t.Errorf("%+v, %v", got, err)
	}
}
