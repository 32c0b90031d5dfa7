package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/kube/wire"
)

// byNode finds Pods by their node; a Pod named "bad" makes it panic.
func byNode() *Index {
	return NewIndex("node", func(p *corev1.Pod) []string {
		if p.Name == "bad" {
			panic("oh no")
		}
		return []string{p.Spec.NodeName, "all"}
	})
}

func podOn(name, node, owner string) string {
	return `{"metadata":{"name":"` + name + `","ownerReferences":[{"uid":"other"},{"uid":"` + owner + `"}]},"spec":{"nodeName":"` + node + `"}}`
}

// A list that is narrowed by what servers do not know is right without any cache.
func TestListByOwnerAndIndex(t *testing.T) {
	t.Parallel()
	owner := &gadget{ObjectMeta: named("ns", "owner")}
	owner.UID = "u1"
	x := byNode()
	for name, c := range map[string]struct {
		selectors []Selector
		want      []string
	}{
		"owner":    {[]Selector{OwnerIs(owner)}, []string{"a", "b"}},
		"index":    {[]Selector{x.Is("n1")}, []string{"a", "c"}},
		"both":     {[]Selector{OwnerIs(owner), x.Is("n1")}, []string{"a"}},
		"twice":    {[]Selector{x.Is("all"), x.Is("n2")}, []string{"b"}},
		"no value": {[]Selector{x.Is("n3")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t, answer(page("next", podOn("a", "n1", "u1"), podOn("b", "n2", "u1"))),
				answer(page("", podOn("c", "n1", "u2"), `{"metadata":{"name":"misfit"},"spec":{"nodeName":[]}}`)))
			pods, err := Everywhere[corev1.Pod](NewClientFromHandler(s)).List(t.Context(), append(c.selectors, Label("app", "web"))...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, namesOf(pods)); diff != "" {
				t.Error(diff)
			}
			if got := s.got[0]; got.Query.Get("labelSelector") != "app=web" || len(got.Matches) != len(c.selectors) {
				t.Errorf("asked: %+v", got)
			}
		})
	}
	s := scripted(t, answer(page("", podOn("bad", "n1", "u1"))))
	if _, err := Everywhere[corev1.Pod](NewClientFromHandler(s)).List(t.Context(), x.Is("n1")); err == nil || !strings.Contains(err.Error(), `the index "node": panic: oh no`) {
		t.Errorf("a function that panics: %v", err)
	}
}

// A request that cannot be narrowed so is an error before it is sent, above all a deletion.
func TestOwnerAndIndexNarrowListsOnly(t *testing.T) {
	t.Parallel()
	client := NewClientFromHandler(scripted(t))
	owner := &gadget{ObjectMeta: named("ns", "owner")}
	owner.UID = "u1"
	list := func(a API[corev1.Pod], s Selector) error { _, err := a.List(t.Context(), s); return err }
	pods := Namespaced[corev1.Pod](client, "ns")
	watch := func(s Selector) (err error) {
		for _, err = range pods.Watch(t.Context(), "1", s) {
			break
		}
		return err
	}
	_, ofMetadata := Metadata(client, pods.Resource(), "ns").List(t.Context(), byNode().Is("n1"))
	var none *Index
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"delete all":         {pods.DeleteAll(t.Context(), []Selector{OwnerIs(owner)}), "narrow lists only"},
		"delete by index":    {pods.DeleteAll(t.Context(), []Selector{byNode().Is("n1")}), "narrow lists only"},
		"watch":              {watch(byNode().Is("n1")), "narrow lists only"},
		"owner without uid":  {list(pods, OwnerIs(&gadget{ObjectMeta: named("ns", "new")})), `"ns/new" has no uid`},
		"index of another":   {list(pods, NewIndex("size", func(*gadget) []string { return nil }).Is("1")), `the index "size" is of gadgets.example.com (v1), not of pods (v1)`},
		"index of no type":   {list(pods, NewIndex("x", func(*autoscalingv1.Scale) []string { return nil }).Is("1")), "does not serve this type"},
		"index of nothing":   {list(pods, NewIndex[corev1.Pod]("x", nil).Is("1")), "function is nil"},
		"index that is nil":  {none.Check(pods.Resource(), wire.Full), "kube.NewIndex"},
		"index and metadata": {ofMetadata, "more than the metadata"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}
