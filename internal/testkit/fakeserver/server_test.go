package fakeserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

type thingSpec struct {
	Size  int    `json:"size,omitempty"`
	Color string `json:"color,omitempty"`
}

type thingStatus struct {
	Size int `json:"size,omitempty"`
}

func (thingSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing"}
}

type thing = kube.CustomResource[thingSpec, thingStatus]

func newThing(name string, size int, labels ...string) *thing {
	o := &thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: thingSpec{Size: size}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		o.Labels = map[string]string{k: v}
	}
	return o
}

func apply(t *testing.T, c *kube.Client, o *thing, options ...kube.ApplyOption) *thing {
	t.Helper()
	applied, err := kube.Apply(t.Context(), c, o, options...)
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func TestVersionsAndGenerations(t *testing.T) {
	t.Parallel()
	s := fakeserver.New()
	c := s.Client()
	first := apply(t, c, newThing("a", 1))
	if same := apply(t, c, newThing("a", 1)); same.ResourceVersion != first.ResourceVersion {
		t.Errorf("an apply that changes nothing moved the version from %s to %s", first.ResourceVersion, same.ResourceVersion)
	}
	labelled := apply(t, c, newThing("a", 1, "x=y"))
	if labelled.Generation != 1 || labelled.ResourceVersion == first.ResourceVersion {
		t.Errorf("after a change of a label: generation %d, version %s", labelled.Generation, labelled.ResourceVersion)
	}
	labelled.Status.Size = 7
	if err := c.ApplyStatus(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	grown := apply(t, c, newThing("a", 2))
	if grown.Generation != 2 || grown.Status.Size != 7 || len(grown.Labels) != 0 {
		t.Errorf("after a change of the spec: %+v", grown)
	}
	other := apply(t, c, newThing("b", 1))
	if other.UID == grown.UID || other.ResourceVersion <= grown.ResourceVersion {
		t.Errorf("another object: %+v after %+v", other.ObjectMeta, grown.ObjectMeta)
	}
	grown.ResourceVersion = first.ResourceVersion
	if _, err := kube.Everywhere[thing](c).Replace(t.Context(), grown); !kube.IsConflict(err) {
		t.Errorf("a replacement of an old version: %v", err)
	}
	if _, err := kube.Apply(t.Context(), c, newThing("dry", 1), kube.DryRun()); err != nil || s.Object("things", "default", "dry") != nil {
		t.Errorf("a dry run stored an object, or failed: %v", err)
	}
}

func TestFieldsHaveOwners(t *testing.T) {
	t.Parallel()
	s := fakeserver.New()
	c := s.Client()
	both := newThing("a", 1)
	both.Spec.Color = "red"
	apply(t, c, both, kube.FieldManager("one"))
	if _, err := kube.Apply(t.Context(), c, newThing("a", 2), kube.FieldManager("two"), kube.NoForce()); !kube.IsApplyConflict(err) {
		t.Errorf("an apply of another's field: %v", err)
	}
	apply(t, c, newThing("a", 2), kube.FieldManager("two"))
	if got := owners(s, "a"); got != `one Apply {"f:spec":{"f:color":{}}}, two Apply {"f:spec":{"f:size":{}}}` {
		t.Errorf("after a forced apply: %s", got)
	}
	// What a manager no longer applies goes, unless somebody else owns it.
	empty := newThing("a", 0)
	empty.Labels = map[string]string{"x": "y"}
	if got := apply(t, c, empty, kube.FieldManager("one")); got.Spec.Color != "" || got.Spec.Size != 2 || got.Labels["x"] != "y" {
		t.Errorf("after an apply without the color: %+v", got)
	}
	if _, err := kube.Namespaced[thing](c, "default").Patch(t.Context(), "a", kube.MergePatch(map[string]any{"spec": map[string]any{"size": 3}}), kube.FieldManager("hand")); err != nil {
		t.Fatal(err)
	}
	if got := owners(s, "a"); got != `one Apply {"f:metadata":{"f:labels":{"f:x":{}}},"f:spec":{}}, hand Update {"f:spec":{"f:size":{}}}` {
		t.Errorf("after a patch: %s", got)
	}
	if got := apply(t, c, newThing("a", 0), kube.FieldManager("one")); len(got.Labels) != 0 || got.Spec.Size != 3 {
		t.Errorf("after an apply of nothing: %+v", got)
	}
}

func owners(s *fakeserver.Server, name string) string {
	var all []string
	for _, each := range s.Object("things", "default", name)["metadata"].(map[string]any)["managedFields"].([]any) {
		entry := each.(map[string]any)
		fields, _ := json.Marshal(entry["fieldsV1"])
		all = append(all, fmt.Sprint(entry["manager"], " ", entry["operation"], " ", string(fields)))
	}
	return strings.Join(all, ", ")
}

func TestOwnerReferencesOfTwoManagersAreMerged(t *testing.T) {
	t.Parallel()
	s := fakeserver.New()
	c := s.Client()
	one, two := apply(t, c, newThing("one", 1)), apply(t, c, newThing("two", 1))
	for manager, owner := range map[string]*thing{"m1": one, "m2": two} {
		child := newThing("child", 1)
		child.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: owner.Name, UID: owner.UID}}
		apply(t, c, child, kube.FieldManager(manager))
	}
	if got := apply(t, c, newThing("child", 1), kube.FieldManager("m1")); len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != two.UID {
		t.Errorf("after one manager left its reference out: %v", got.OwnerReferences)
	}
	if err := c.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if n := s.CollectGarbage(); n != 1 || s.Object("things", "default", "child") != nil {
		t.Errorf("%d objects were collected", n)
	}
}

func TestFinalizersKeepAnObject(t *testing.T) {
	t.Parallel()
	s := fakeserver.New()
	c := s.Client()
	things := kube.Namespaced[thing](c, "default")
	o := newThing("a", 1)
	o.Finalizers = []string{"example.com/x"}
	made, err := things.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	live, err := things.Get(t.Context(), "a")
	if err != nil || live.DeletionTimestamp == nil || live.Generation != 2 {
		t.Fatalf("after the deletion: %+v, %v", live, err)
	}
	if _, err := things.Patch(t.Context(), "a", kube.JSONPatch(kube.ReplaceAt("/metadata/finalizers", []string{"example.com/x", "more"}))); !kube.IsInvalid(err) {
		t.Errorf("a finalizer was added to an object that is being deleted: %v", err)
	}
	if _, err := things.Patch(t.Context(), "a", kube.JSONPatch(kube.TestAt("/metadata/uid", "other"), kube.RemoveAt("/metadata/finalizers"))); !kube.IsInvalid(err) {
		t.Errorf("a patch whose test fails: %v", err)
	}
	last, err := things.Patch(t.Context(), "a", kube.JSONPatch(kube.TestAt("/metadata/uid", live.UID), kube.RemoveAt("/metadata/finalizers")))
	if err != nil || last.ResourceVersion != live.ResourceVersion {
		t.Errorf("the answer to the removal of the last finalizer: %+v, %v", last, err)
	}
	if _, err := things.Get(t.Context(), "a"); !kube.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

// feed is what one watch was sent, in short: "+a1" for a at the first version added, "~"
// modified, "-" deleted, "=" a bookmark, "!" an error.
type feed struct {
	t        *testing.T
	server   *fakeserver.Server
	response *wire.Response
	err      error

	mu     sync.Mutex
	events []string
	ended  error
}

func open(t *testing.T, s *fakeserver.Server, stream wire.Stream, parameters ...string) *feed {
	t.Helper()
	f := &feed{t: t, server: s}
	f.response, f.err = s.Do(t.Context(), stream.Request(wire.VerbWatch, parameters...))
	if f.err == nil {
		go func() {
			for frame, err := range wire.Frames(f.response.BodyReader) {
				f.mu.Lock()
				if f.ended = err; err == nil {
					f.add(frame)
				}
				f.mu.Unlock()
			}
			f.response.BodyReader.Close()
		}()
		t.Cleanup(func() { f.response.BodyReader.Close() })
	}
	return f
}

func (f *feed) add(frame wire.Frame) {
	var o struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Code     int               `json:"code"`
	}
	if err := kube.Unmarshal(frame.Object, &o); err != nil {
		f.t.Error(err)
	}
	sign := map[string]string{"ADDED": "+", "MODIFIED": "~", "DELETED": "-", "BOOKMARK": "=", "ERROR": "!"}[frame.Type]
	text := fmt.Sprint(sign, o.Metadata.Name, o.Metadata.ResourceVersion)
	if o.Code > 0 {
		text += fmt.Sprint(o.Code)
	}
	if o.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		text += "="
	}
	f.events = append(f.events, text)
}

func (f *feed) check(want ...string) {
	f.t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		f.t.Fatal(f.err)
	}
	if diff := cmp.Diff(strings.Join(want, " "), strings.Join(f.events, " ")); diff != "" {
		f.t.Errorf("the events (-want +got):\n%s", diff)
	}
	f.events = nil
}

func things(t *testing.T, selectors ...kube.Selector) wire.Stream {
	t.Helper()
	streams, err := kube.Everywhere[thing](fakeserver.New().Client()).Streams(selectors...)
	if err != nil {
		t.Fatal(err)
	}
	return streams[0]
}

func TestWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		c := s.Client()
		apply(t, c, newThing("a", 1, "x=y"))
		all := open(t, s, things(t), "sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan")
		all.check("+a101", "=101=")
		selected := open(t, s, things(t, kube.Label("x", "y")), "resourceVersion", "100")
		selected.check("+a101")
		apply(t, c, newThing("a", 1, "x=z"))
		selected.check("-a102")
		all.check("~a102")
		apply(t, c, newThing("a", 2, "x=y"))
		selected.check("+a103")
		// A resumed watch sees the changes since, in order.
		open(t, s, things(t, kube.Label("x", "y")), "resourceVersion", "101").check("-a102", "+a103")
		if err := c.Delete(t.Context(), newThing("a", 0)); err != nil {
			t.Fatal(err)
		}
		selected.check("-a104")
		all.check("~a103", "-a104")
		named := open(t, s, things(t, kube.Field("metadata.name", "b")), "resourceVersion", "104")
		apply(t, c, newThing("b", 1))
		apply(t, c, newThing("c", 1))
		named.check("+b105")
	})
}

func TestWatchFromAVersionThatIsNotReached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		s.Bookmarks(time.Minute)
		c := s.Client()
		backup := s.Snapshot()
		apply(t, c, newThing("a", 1))
		apply(t, c, newThing("b", 1))
		before := open(t, s, things(t), "resourceVersion", "100", "allowWatchBookmarks", "true")
		before.check("+a101", "+b102")
		s.Restore(backup)
		before.check()
		if before.ended == nil {
			t.Error("a restored server did not cut a watch")
		}
		future := open(t, s, things(t), "resourceVersion", "102", "allowWatchBookmarks", "true")
		apply(t, c, newThing("x", 1))
		apply(t, c, newThing("y", 1))
		time.Sleep(time.Hour)
		future.check()
		apply(t, c, newThing("z", 1))
		future.check("+z103")
		time.Sleep(61 * time.Second)
		future.check("=103")
	})
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		c := s.Client()
		for i := range 3 {
			apply(t, c, newThing(fmt.Sprint("a", i), 1))
		}
		stream := things(t)
		page, err := s.Do(t.Context(), stream.Request(wire.VerbList, "limit", "2"))
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Metadata metav1.ListMeta
			Items    []thing
		}
		if err := json.Unmarshal(page.Body, &list); err != nil || len(list.Items) != 2 || list.Metadata.ResourceVersion != "103" {
			t.Fatalf("the first page: %s, %v", page.Body, err)
		}
		apply(t, c, newThing("a2", 2))
		next := list.Metadata.Continue
		if page, err = s.Do(t.Context(), stream.Request(wire.VerbList, "limit", "2", "continue", next)); err != nil || !strings.Contains(string(page.Body), `"103"`) || strings.Contains(string(page.Body), `"size":2`) {
			t.Errorf("the second page: %s, %v", page.Body, err)
		}
		s.Compact()
		if _, err = s.Do(t.Context(), stream.Request(wire.VerbList, "limit", "2", "continue", next)); !kube.HasReason(err, metav1.StatusReasonGone) {
			t.Errorf("a page after the compaction: %v", err)
		}
		open(t, s, stream, "resourceVersion", "104").check()
		open(t, s, stream, "resourceVersion", "103").check("!410")
		s.RefuseExpiredWatches()
		if f := open(t, s, stream, "resourceVersion", "103"); !kube.HasReason(f.err, metav1.StatusReasonGone) {
			t.Errorf("a watch after the compaction: %v", f.err)
		}
		_, err = s.Do(t.Context(), stream.Request(wire.VerbList, "resourceVersion", "105"))
		if e, ok := kube.AsError(err); !ok || e.Code != http.StatusGatewayTimeout {
			t.Errorf("a list at a version that is not reached: %v", err)
		}
	})
}

// Two lists that were answered in part at the same version once had the same token: each reader got the pages of the other
// one. TestProgram then failed in one of four runs of the seed 860002769.
func TestPagesOfTwoListsAtATime(t *testing.T) {
	t.Parallel()
	s := fakeserver.New()
	c := s.Client()
	for _, namespace := range []string{"a", "b"} {
		for i := range 4 {
			o := newThing(fmt.Sprint(namespace, i), 1)
			o.Namespace = namespace
			apply(t, c, o)
		}
	}
	type page struct {
		Metadata metav1.ListMeta
		Items    []thing
	}
	// next reads the page that follows the page before. It returns the names of the objects of that page.
	next := func(namespace string, before page) (names []string, read page) {
		t.Helper()
		stream := things(t)
		stream.Namespace = namespace
		response, err := s.Do(t.Context(), stream.Request(wire.VerbList, "limit", "1", "continue", before.Metadata.Continue))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(response.Body, &read); err != nil {
			t.Fatal(err)
		}
		for _, o := range read.Items {
			names = append(names, o.Name)
		}
		return names, read
	}
	var a, b page
	var namesOfA, namesOfB []string
	// Both lists are read in turn, page by page.
	for range 4 {
		var more []string
		more, a = next("a", a)
		namesOfA = append(namesOfA, more...)
		more, b = next("b", b)
		namesOfB = append(namesOfB, more...)
	}
	if got := fmt.Sprint(namesOfA, namesOfB); got != "[a0 a1 a2 a3] [b0 b1 b2 b3]" {
		t.Errorf("the pages of the two lists show %s", got)
	}
}

func TestStreamsAreScriptedOneByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fakeserver.New()
		c := s.Client()
		streams := s.Stream(fakeserver.StreamID{Plural: "things"})
		all := open(t, s, things(t), "resourceVersion", "100")
		metadata := things(t)
		metadata.Representation = wire.MetadataOnly
		other := open(t, s, metadata, "resourceVersion", "100")

		streams.Delay(time.Second)
		apply(t, c, newThing("a", 1))
		other.check("+a101")
		all.check()
		time.Sleep(time.Second)
		all.check("+a101")

		streams.Freeze()
		apply(t, c, newThing("b", 1))
		time.Sleep(time.Hour)
		other.check("+b102")
		all.check()
		streams.Thaw()
		all.check("+b102")

		apply(t, c, newThing("c", 1))
		streams.Cut()
		all.check()
		streams.Refuse(http.StatusForbidden, "")
		if f := open(t, s, things(t), "resourceVersion", "102"); !kube.IsForbidden(f.err) {
			t.Errorf("a refused watch: %v", f.err)
		}
		streams.Allow()
		streams.Delay(0)
		all = open(t, s, things(t), "resourceVersion", "102", "timeoutSeconds", "300")
		all.check("+c103")
		time.Sleep(301 * time.Second)
		all.check()
		if all.ended != nil || streams.Watches() != 0 {
			t.Errorf("after the timeout: %v, %d watches", all.ended, streams.Watches())
		}
		streams.Expire()
		open(t, s, things(t), "resourceVersion", "103").check("!410")

		streams.Hold()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Do(ctx, things(t).Request(wire.VerbWatch)); err == nil {
			t.Error("a request that is held was answered")
		}
		streams.Release()
		open(t, s, things(t), "resourceVersion", "103").check()
	})
}

func TestKindsWithoutGenerations(t *testing.T) {
	t.Parallel()
	s := fakeserver.New()
	c := s.Client()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "m-"}, Data: map[string]string{"a": "b"}}
	made, err := kube.Everywhere[corev1.ConfigMap](c).Create(t.Context(), m)
	if err != nil || made.Generation != 0 || made.Name == "" {
		t.Errorf("%+v, %v", made, err)
	}
	if err := kube.Namespaced[corev1.ConfigMap](c, "default").DeleteAll(t.Context(), []kube.Selector{kube.Everything()}); err != nil || len(s.Objects("configmaps")) != 0 {
		t.Errorf("after the deletion of all: %v, %v", err, s.Objects("configmaps"))
	}
	verbs := []wire.Verb{}
	for _, e := range s.Requests() {
		verbs = append(verbs, e.Request.Verb)
	}
	if !slices.Equal(verbs, []wire.Verb{wire.VerbCreate, wire.VerbDeleteCollection}) {
		t.Errorf("the requests: %v", verbs)
	}
}
