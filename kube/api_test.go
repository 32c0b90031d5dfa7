package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube/wire"
)

func page(next string, items ...string) string {
	body := fmt.Sprintf(`{"kind":"List","metadata":{"resourceVersion":"9","continue":%q},"items":[`, next)
	for i, item := range items {
		if i > 0 {
			body += ","
		}
		body += item
	}
	return body + "]}"
}

func item(name string) string { return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns"}}`, name) }

func namesOf[T any, P ObjectOf[T]](objects []*T) []string {
	var names []string
	for _, o := range objects {
		names = append(names, P(o).GetName())
	}
	return names
}

var expired = refuse(410, metav1.StatusReasonExpired, "the continue token has expired")

func TestGet(t *testing.T) {
	t.Parallel()
	s := scripted(t, answer(`{"metadata":{"name":"p"},"spec":{"nodeName":"n"}}`), answer(`{"metadata":{"name":"s"}}`))
	c := NewClientFromHandler(s)
	pod, err := Get[corev1.Pod](t.Context(), c, "ns", "p")
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName != "n" || pod.Kind != "Pod" || pod.APIVersion != "v1" {
		t.Errorf("got %+v", pod)
	}
	if _, err := Get[planet](t.Context(), c, "", "saturn"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`pods "ns/p"`, `planets.example.com "saturn"`} {
		if got := s.got[i].Ref().String(); got != want {
			t.Errorf("asked for %s, want %s", got, want)
		}
	}
}

func TestListFollowsItsPages(t *testing.T) {
	t.Parallel()
	s := scripted(t, answer(page("next", item("a"), item("b"))), answer(page("", item("c"))))
	pods, err := Namespaced[corev1.Pod](NewClientFromHandler(s), "ns").List(t.Context(), Label("app", "web"), ParseFields("metadata.name!=x"), ParseLabels("tier in (a,b)"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, namesOf(pods)); diff != "" {
		t.Error(diff)
	}
	first := url.Values{"limit": {"500"}, "labelSelector": {"app=web,tier in (a,b)"}, "fieldSelector": {"metadata.name!=x"}}
	if diff := cmp.Diff(first, s.got[0].Query); diff != "" {
		t.Error(diff)
	}
	first.Set("continue", "next")
	if diff := cmp.Diff(first, s.got[1].Query); diff != "" {
		t.Error(diff)
	}
	if pods[0].Kind != "Pod" {
		t.Errorf("the kind, which items lack, is not filled in: %+v", pods[0].TypeMeta)
	}
}

// Bug: a page had 500 objects whatever their size. Pages of large objects are smaller.
func TestPagesAdaptToTheSizeOfObjects(t *testing.T) {
	t.Parallel()
	large := `{"metadata":{"name":"p"},"data":{"k":"` + strings.Repeat("x", 1<<20) + `"}}`
	s := scripted(t,
		answer(page("1", item("a"))),
		answer(page("2", slices.Repeat([]string{large}, 50)...)),
		answer(page("3", slices.Repeat([]string{large}, 20)...)),
		answer(page("", item("b"))))
	if _, err := Everywhere[corev1.ConfigMap](NewClientFromHandler(s)).List(t.Context()); err != nil {
		t.Fatal(err)
	}
	var limits []string
	for _, r := range s.got {
		limits = append(limits, r.Query.Get("limit"))
	}
	if diff := cmp.Diff([]string{"500", "500", "10", "10"}, limits); diff != "" {
		t.Error(diff)
	}
}

func TestListBeginsAgainWhenItIsTooOld(t *testing.T) {
	t.Parallel()
	s := scripted(t, answer(page("next", item("gone"), item("a"))), expired, answer(page("", item("a"), item("b"))))
	pods, err := Everywhere[corev1.Pod](NewClientFromHandler(s)).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, namesOf(pods)); diff != "" {
		t.Error(diff)
	}
	if next := s.got[2].Query.Get("continue"); next != "" {
		t.Errorf("went on from %q", next)
	}
}

func TestListGivesUpOnWhatIsAlwaysTooOld(t *testing.T) {
	t.Parallel()
	first := answer(page("next", item("a")))
	pods, err := Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, first, expired, first, expired, first, expired))).List(t.Context())
	if !HasReason(err, metav1.StatusReasonGone) || pods != nil {
		t.Errorf("got %v: %v", pods, err)
	}
}

// A caller that reads one by one has the first page already, and must begin again itself.
func TestEachReportsThatItIsTooOld(t *testing.T) {
	t.Parallel()
	var names []string
	var last error
	for pod, err := range Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, answer(page("next", item("a"))), expired))).Each(t.Context()) {
		if last = err; err == nil {
			names = append(names, pod.Name)
		}
	}
	if diff := cmp.Diff([]string{"a"}, names); diff != "" || !HasReason(last, metav1.StatusReasonGone) {
		t.Errorf("%s%v", diff, last)
	}
}

func TestEachEndsWhenItsCallerDoes(t *testing.T) {
	t.Parallel()
	for range Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, answer(page("next", item("a"), item("b")))))).Each(t.Context()) {
		break // no second page is asked for
	}
}

// Promise 4, for lists: one object that does not fit is an error beside the others.
func TestListWithAnObjectThatDoesNotFit(t *testing.T) {
	t.Parallel()
	bad := `{"metadata":{"name":"bad","namespace":"ns","uid":"u","resourceVersion":"5"},"spec":{"nodeName":7}}`
	pods, err := Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, answer(page("", item("a"), bad, item("b")))))).List(t.Context())
	if diff := cmp.Diff([]string{"a", "b"}, namesOf(pods)); diff != "" {
		t.Error(diff)
	}
	wantError(t, err, `decode pods "ns/bad"`, "nodeName")
	var e *wire.DecodeError
	if !errors.As(err, &e) || e.ResourceVersion != "5" || e.Ref.UID != "u" {
		t.Errorf("the error is %#v", err)
	}
}

func TestGetOfAnObjectThatDoesNotFit(t *testing.T) {
	t.Parallel()
	_, err := Get[corev1.Pod](t.Context(), NewClientFromHandler(scripted(t, answer(`{"spec":[]}`))), "ns", "p")
	wantError(t, err, `decode pods "ns/p"`)
}

// An object from which a conversion has left something out is not what was stored. A program must not act on it.
func TestIncompleteObjectIsUndecodable(t *testing.T) {
	t.Parallel()
	incomplete := `{"metadata":{"name":"p","namespace":"ns","annotations":{"versions.yare.dev/incomplete":"{}"}}}`
	_, err := Get[corev1.Pod](t.Context(), NewClientFromHandler(scripted(t, answer(incomplete))), "ns", "p")
	wantError(t, err, `decode pods "ns/p"`, "versions.yare.dev/incomplete", "mend the object")
	pods, err := Everywhere[corev1.Pod](NewClientFromHandler(scripted(t, answer(page("", item("a"), incomplete))))).List(t.Context())
	if diff := cmp.Diff([]string{"a"}, namesOf(pods)); diff != "" {
		t.Error(diff)
	}
	wantError(t, err, `decode pods "ns/p"`, "versions.yare.dev/incomplete")
}

func TestNarrowedClient(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := scripted(t, answer(page("", item("a"))), answer(page("", item("b"))), // two namespaces
		answer(page("")), answer(page("")), answer(page("")))
	c := NewClientFromHandler(s).InNamespaces("two", "one", "two")
	if diff := cmp.Diff([]string{"one", "two"}, c.Namespaces()); diff != "" {
		t.Error(diff)
	}
	pods, err := Everywhere[corev1.Pod](c).List(ctx)
	if diff := cmp.Diff([]string{"a", "b"}, namesOf(pods)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	_, err1 := Everywhere[corev1.Node](c).List(ctx)
	_, err2 := Namespaced[corev1.Pod](c, "three").List(ctx)
	_, err3 := Everywhere[corev1.Pod](c.AllNamespaces()).List(ctx)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.got {
		got = append(got, r.Resource.Plural+" in "+r.Namespace)
	}
	if diff := cmp.Diff([]string{"pods in one", "pods in two", "nodes in ", "pods in three", "pods in "}, got); diff != "" {
		t.Error(diff)
	}
}

// Bug: the items of a list of a built-in kind have no kind, which unstructured objects
// refused.
func TestDynamicList(t *testing.T) {
	t.Parallel()
	pods, err := ResourceOf[corev1.Pod]()
	if err != nil {
		t.Fatal(err)
	}
	c := NewClientFromHandler(scripted(t, answer(page("", `{"metadata":{"name":"a"},"spec":{"priority":9007199254740993,"weight":0.5}}`))))
	got, err := Dynamic(c, pods, "ns").List(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v: %v", got, err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"priority": int64(9007199254740993), "weight": 0.5},
	}
	if diff := cmp.Diff(want, got[0].Object); diff != "" {
		t.Error(diff)
	}
}

func TestMetadataOnly(t *testing.T) {
	t.Parallel()
	gadgets, err := ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	s := scripted(t, answer(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"g","labels":{"a":"b"}}}`))
	got, err := Metadata(NewClientFromHandler(s), gadgets, "ns").Get(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != "Gadget" || got.Labels["a"] != "b" || s.got[0].Representation != wire.MetadataOnly {
		t.Errorf("got %+v", got)
	}
}

// Wrong input is an error before any request, and the error says what to write.
func TestBadInputMakesNoRequest(t *testing.T) {
	t.Parallel()
	c := NewClientFromHandler(scripted(t))
	ctx := t.Context()
	pods := Namespaced[corev1.Pod](c, "ns")
	pod := func(namespace, name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: named(namespace, name)} }
	for name, test := range map[string]struct {
		do   func() error
		want string
	}{
		"get without a name":       {func() error { _, err := pods.Get(ctx, ""); return err }, "get pods: the name is empty"},
		"get without a namespace":  {func() error { _, err := Get[corev1.Pod](ctx, c, "", "p"); return err }, `get pods "p": the namespace is missing: use kube.Namespaced`},
		"empty namespace":          {func() error { _, err := Namespaced[corev1.Pod](c, "").List(ctx); return err }, "pods: the namespace is empty: use kube.Everywhere"},
		"cluster in a namespace":   {func() error { _, err := Namespaced[corev1.Node](c, "ns").List(ctx); return err }, "nodes live outside of namespaces"},
		"get cluster in namespace": {func() error { _, err := Get[planet](ctx, c, "ns", "p"); return err }, "planets.example.com live outside of namespaces"},
		"unknown type":             {func() error { _, err := Everywhere[foreign](c).List(ctx); return err }, "wrap it"},
		"unstructured":             {func() error { _, err := Everywhere[unstructured.Unstructured](c).List(ctx); return err }, "use kube.Dynamic"},
		"incomplete resource":      {func() error { _, err := Dynamic(c, wire.Resource{Plural: "x"}, "").List(ctx); return err }, "needs Version, Kind and Plural"},
		"no client":                {func() error { _, err := Everywhere[corev1.Pod](nil).List(ctx); return err }, "pods: the client is nil"},
		"bad label selector":       {func() error { _, err := pods.List(ctx, Label("a", "b"), ParseLabels("a==b=c")); return err }, `label selector "a==b=c"`},
		"bad field selector":       {func() error { _, err := pods.List(ctx, ParseFields("metadata.name")); return err }, `field selector "metadata.name"`},
		"no status":                {func() error { _, err := Namespaced[corev1.ConfigMap](c, "ns").Status().Get(ctx, "c"); return err }, "configmaps (v1.ConfigMap) have no status"},
		"no custom status":         {func() error { _, err := Everywhere[planet](c).Status().Get(ctx, "p"); return err }, "the custom resource of kube.planetSpec) have no status"},
		"watch of two namespaces": {func() error {
			for _, err := range Everywhere[corev1.Pod](c.InNamespaces("a", "b")).Watch(ctx, "") {
				return err
			}
			return nil
		}, "cannot watch several namespaces"},

		"create nothing":             {func() error { _, err := pods.Create(ctx, nil); return err }, "create pods: the object is nil"},
		"create without a name":      {func() error { _, err := pods.Create(ctx, pod("", "")); return err }, "neither a name nor a generateName"},
		"create without a namespace": {func() error { _, err := Everywhere[corev1.Pod](c).Create(ctx, pod("", "p")); return err }, `create pods "p": it has no namespace`},
		"create in another":          {func() error { _, err := pods.Create(ctx, pod("other", "p")); return err }, `create pods "other/p": it is not in the namespace "ns"`},
		"create cluster in a namespace": {func() error {
			_, err := Everywhere[planet](c).Create(ctx, &planet{ObjectMeta: named("ns", "p")})
			return err
		}, `has the namespace "ns"`},
		"create a status":           {func() error { _, err := pods.Status().Create(ctx, pod("ns", "p")); return err }, "create pods/status"},
		"replace nothing":           {func() error { _, err := pods.Replace(ctx, nil); return err }, "update pods: the object is nil"},
		"replace without a name":    {func() error { _, err := pods.Replace(ctx, pod("ns", "")); return err }, "update pods: the name is empty"},
		"patch without a name":      {func() error { _, err := pods.Patch(ctx, "", MergePatch(map[string]any{})); return err }, "patch pods: the name is empty"},
		"patch with nothing":        {func() error { _, err := pods.Patch(ctx, "p", Patch{}); return err }, `patch pods "ns/p": the patch is empty`},
		"merge with null":           {func() error { _, err := pods.Patch(ctx, "p", MergePatch(nil)); return err }, "must encode as a JSON object"},
		"merge with bytes":          {func() error { _, err := pods.Patch(ctx, "p", MergePatch([]byte(`{}`))); return err }, "must encode as a JSON object"},
		"merge with a channel":      {func() error { _, err := pods.Patch(ctx, "p", MergePatch(make(chan int))); return err }, "encode a patch"},
		"no operations":             {func() error { _, err := pods.Patch(ctx, "p", JSONPatch()); return err }, "the JSON patch has no operations"},
		"apply nothing":             {func() error { _, err := Apply(ctx, c, (*corev1.Pod)(nil)); return err }, "patch pods: the object is nil"},
		"apply without a name":      {func() error { _, err := Apply(ctx, c, pod("ns", "")); return err }, "patch pods: the name is empty"},
		"apply without a namespace": {func() error { _, err := Apply(ctx, c, pod("", "p")); return err }, "it has no namespace"},
		"apply what was read": {func() error {
			p := pod("ns", "p")
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "them"}}
			_, err := Apply(ctx, c, p)
			return err
		}, `apply pods "ns/p": the object was read, because it has managedFields`},
		"apply what was read and stripped": {func() error {
			p := pod("ns", "p")
			p.CreationTimestamp = metav1.Unix(1, 0)
			_, err := Apply(ctx, c, p)
			return err
		}, "build a new object"},
		"apply unstructured what was read": {func() error {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
				"name": "g", "namespace": "ns", "creationTimestamp": "2026-01-02T03:04:05Z"}}}
			gadgets, err := ResourceOf[gadget]()
			if err == nil {
				_, err = Dynamic(c, gadgets, "").Apply(ctx, u)
			}
			return err
		}, "the object was read"},
		"scale without a name":          {func() error { _, err := pods.SetScale(ctx, "", 1); return err }, "the name is empty"},
		"get scale without a name":      {func() error { _, err := pods.GetScale(ctx, ""); return err }, "the name is empty"},
		"apply the status of nothing":   {func() error { return c.ApplyStatus(ctx, nil) }, "no pointer to an object"},
		"apply the status of nil":       {func() error { return c.ApplyStatus(ctx, (*gadget)(nil)) }, "the object is nil"},
		"apply no status":               {func() error { return c.ApplyStatus(ctx, &planet{ObjectMeta: named("", "p")}) }, "has none"},
		"apply status, not read":        {func() error { return c.ApplyStatus(ctx, &gadget{ObjectMeta: named("ns", "g")}) }, "read the object first"},
		"apply status, cluster":         {func() error { return c.ApplyStatus(ctx, &corev1.Node{ObjectMeta: named("ns", "n")}) }, "live outside of namespaces"},
		"delete without a name":         {func() error { return pods.Delete(ctx, "") }, "delete pods: the name is empty"},
		"delete a status":               {func() error { return pods.Status().Delete(ctx, "p") }, "whole object only"},
		"delete all of status":          {func() error { return pods.Status().DeleteAll(ctx, nil) }, "whole object only"},
		"delete nil":                    {func() error { return c.Delete(ctx, (*corev1.Pod)(nil)) }, "delete pods: the object is nil"},
		"delete nothing":                {func() error { return c.Delete(ctx, nil) }, "no pointer to an object"},
		"delete without a namespace":    {func() error { return c.Delete(ctx, pod("", "p")) }, "the namespace is missing"},
		"delete cluster in a namespace": {func() error { return c.Delete(ctx, &corev1.Node{ObjectMeta: named("ns", "n")}) }, "live outside of namespaces"},
		"delete all everywhere":         {func() error { return Everywhere[corev1.Pod](c).DeleteAll(ctx, nil) }, "delete all pods: the namespace is missing"},
		"delete all, no selector":       {func() error { return pods.DeleteAll(ctx, nil) }, "select with kube.Everything"},
		"delete all, empty selector":    {func() error { return pods.DeleteAll(ctx, []Selector{ParseLabels("")}) }, "select with kube.Everything"},
		"delete all by owner": {func() error {
			return pods.DeleteAll(ctx, []Selector{OwnerIs(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}})})
		}, "narrow lists only"},
		"list in no namespaces":      {func() error { _, err := Everywhere[corev1.Pod](c.InNamespaces()).List(ctx); return err }, "narrowed to no namespaces"},
		"list in an empty namespace": {func() error { _, err := Everywhere[corev1.Pod](c.InNamespaces("a", "")).List(ctx); return err }, "whose name is empty"},
		"delete all, bad selector":   {func() error { return pods.DeleteAll(ctx, []Selector{ParseLabels("!")}) }, "label selector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantError(t, test.do(), test.want)
		})
	}
	_, err := NewClient(nil)
	wantError(t, err, "kube.ConfigSource")
}

func TestPipeline(t *testing.T) {
	t.Parallel()
	s := scripted(t, answer(`{}`))
	var order []string
	note := func(name string) func(wire.Handler) wire.Handler {
		return func(next wire.Handler) wire.Handler {
			return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
				order = append(order, name+" "+r.Cluster)
				return next.Do(ctx, r)
			})
		}
	}
	plain := NewClientFromHandler(s)
	c := plain.With(note("inner")).With(note("outer")).InCluster("east").WithFieldManager("m")
	if _, err := Get[corev1.Pod](t.Context(), c, "ns", "p"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"outer east", "inner east"}, order); diff != "" {
		t.Error(diff)
	}
	if plain.FieldManager() != "yare" || c.FieldManager() != "m" {
		t.Errorf("the managers are %s and %s: a client is immutable", plain.FieldManager(), c.FieldManager())
	}
	streams, err := Everywhere[corev1.Pod](c).Streams()
	if err != nil || streams[0].Cluster != "east" {
		t.Errorf("the stream is %+v: %v", streams, err)
	}
}

// API.For returns the API that All or Namespaced would return for the other client and namespace.
func TestAPIFor(t *testing.T) {
	t.Parallel()
	c := NewClientFromHandler(scripted(t))
	inAll := Everywhere[corev1.Pod](nil)
	if err := inAll.Err(); err == nil {
		t.Error("there is no client, and no error")
	}
	for namespace, want := range map[string]error{"ns": nil, "": nil, "a/b": Namespaced[corev1.Pod](c, "a/b").Err()} {
		if got := inAll.For(c, namespace); fmt.Sprint(got.Err()) != fmt.Sprint(want) || got.target.namespace != namespace || got.client != c || !got.target.hasStatus || !got.target.hasStatusSubresource {
			t.Errorf("in %q: %+v, want the error %v", namespace, got.target, want)
		}
	}
	wrong := Everywhere[metav1.PartialObjectMetadata](c)
	wantError(t, wrong.For(c, "ns").Err(), "kube.Metadata")
}
