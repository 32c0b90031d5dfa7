package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// crds answers the discovery of a server, and refuses what it does not serve as a server does.
type crds struct {
	next wire.Handler
	mu   sync.Mutex
	// absent holds the plurals that are not served.
	absent map[string]bool
	// broken is the answer to discovery, or nil.
	broken      error
	discoveries atomic.Int64
}

func (d *crds) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Resource.Plural != "" {
		if d.absent[r.Resource.Plural] {
			return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound}
		}
		return d.next.Do(ctx, r)
	}
	d.discoveries.Add(1)
	if d.broken != nil {
		return nil, d.broken
	}
	if r.Resource.Version == "" { // all groups
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
		if !d.absent["plants"] || !d.absent["gardens"] {
			version := metav1.GroupVersionForDiscovery{GroupVersion: "test.example.com/v1", Version: "v1"}
			list.Groups = []metav1.APIGroup{{Name: "test.example.com", Versions: []metav1.GroupVersionForDiscovery{version}}}
		}
		body, err := kube.Marshal(list)
		return &wire.Response{Code: http.StatusOK, Body: body}, err
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: r.Resource.GroupVersion().String()}
	for plural, kind := range map[string]string{"plants": "Plant", "gardens": "Garden"} {
		if !d.absent[plural] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: kind, Namespaced: true},
				metav1.APIResource{Name: plural + "/status", Kind: kind, Namespaced: true})
		}
	}
	if len(list.APIResources) == 0 {
		return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound}
	}
	body, err := kube.Marshal(list)
	return &wire.Response{Code: http.StatusOK, Body: body}, err
}

func (d *crds) set(plural string, isServed bool, broken error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.absent[plural], d.broken = !isServed, broken
}

// A kind that is not served counts as synced and empty, is watched once it is served, and its objects
// count as deleted when it is removed.
func TestIfServed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{"plants": true}}
		c := kube.NewClientFromHandler(served)
		eden := create(t, direct, garden("eden"))
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			plants, err := kube.Namespaced[Plant](c, g.Namespace).List(ctx)
			calls.record(fmt.Sprint(g.Name, " ", len(plants)))
			return controller.Done(), err
		}
		p := start(t, c, controller.New(reconcile, controller.Owns[Plant](controller.IfServed())))
		expect := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, slices.Compact(calls.drain())); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", what, diff)
			}
		}
		synctest.Wait()
		expect("the start", "eden 0")

		time.Sleep(10 * time.Minute)
		if n := served.discoveries.Load(); n < 10 || n > 30 {
			t.Errorf("%d discoveries in ten minutes", n)
		}
		served.set("plants", true, nil)
		create(t, direct, kube.OwnedBy(eden, plant("rose")))
		time.Sleep(time.Minute)
		expect("once the kind is served", "eden 1")
		create(t, direct, kube.OwnedBy(eden, plant("fern")))
		synctest.Wait()
		expect("a change", "eden 2")

		// The watch ends. As long as discovery fails, nothing is known.
		served.set("plants", false, errors.New("the server is unwell"))
		for f := range s.feeds {
			if f.plural == "plants" {
				f.end()
			}
		}
		time.Sleep(10 * time.Minute)
		expect("discovery fails")
		served.set("plants", false, nil)
		time.Sleep(2 * time.Minute)
		expect("the kind is gone", "eden 0")

		remove(t, direct, plant("fern"))
		served.set("plants", true, nil)
		time.Sleep(time.Minute)
		expect("the kind is back", "eden 1")
		for _, stats := range p.caches.Stats() {
			if !stats.Synced {
				t.Errorf("%s is not synced", stats.Stream)
			}
		}
	})
}

// Regression: another controller of the program watches the same kind without IfServed, and so keeps the objects of a
// kind that was removed. The controller with IfServed was told that the objects are gone, and read them all the same.
func TestRemovedKindIsNotReadFromAnotherStream(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{}}
		eden := create(t, direct, garden("eden"))
		create(t, direct, kube.OwnedBy(eden, plant("rose")))
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			plants, err := kube.Namespaced[Plant](c, g.Namespace).List(ctx)
			if err != nil {
				return controller.Done(), err
			}
			_, err = kube.Namespaced[Plant](c, g.Namespace).Get(ctx, "rose")
			calls.record(fmt.Sprint(len(plants), " ", kube.IsNotFound(err)))
			return controller.Done(), kube.IgnoreNotFound(err)
		}
		start(t, kube.NewClientFromHandler(served),
			controller.New(reconcile, controller.Owns[Plant](controller.IfServed())),
			controller.New(recordingNames(new(journal)), controller.Owns[Plant](), controller.Name("others")))
		synctest.Wait()
		if got := calls.drain(); len(got) == 0 || got[len(got)-1] != "1 false" {
			t.Errorf("before the removal: %q, want 1 false at last", got)
		}
		served.set("plants", false, nil)
		for f := range s.feeds {
			if f.plural == "plants" {
				f.end()
			}
		}
		time.Sleep(2 * time.Minute)
		if got := calls.drain(); len(got) == 0 || got[len(got)-1] != "0 true" {
			t.Errorf("after the removal: %q, want 0 true at last", got)
		}
	})
}

// Regression, found by TestProgram (seed 910010801): a kind was removed, and is served again, but its list fails. The
// controller with IfServed was shown that the objects are gone. It read them all the same from the store of another
// controller, which has not been listed since the removal.
func TestRemovedKindIsNotReadFromAnotherStreamBeforeItsNextList(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{}}
		create(t, direct, kube.OwnedBy(create(t, direct, garden("eden")), plant("rose")))
		areListsRefused := false
		s.before = func(r *wire.Request) error {
			if areListsRefused && r.Resource.Plural == "plants" && (r.Verb == wire.VerbList || r.Verb == wire.VerbWatch) {
				return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusServiceUnavailable}
			}
			return nil
		}
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			_, err := kube.Namespaced[Plant](c, g.Namespace).Get(ctx, "rose")
			calls.record(fmt.Sprint(g.Labels["round"], " ", kube.IsNotFound(err)))
			return controller.Done(), kube.IgnoreNotFound(err)
		}
		toEden := func(_ context.Context, m *metav1.PartialObjectMetadata, _ *kube.Client) ([]kube.Key, error) {
			return []kube.Key{{Namespace: m.Namespace, Name: "eden"}}, nil
		}
		plants := kube.Everywhere[Plant](direct).Resource()
		start(t, kube.NewClientFromHandler(served),
			controller.New(reconcile, controller.Watches(toEden, controller.Kind(plants), controller.IfServed())),
			controller.New(recordingNames(new(journal)), controller.Owns[Plant](), controller.Name("others")))
		synctest.Wait()
		served.set("plants", false, nil)
		for f := range s.feeds {
			if f.plural == "plants" {
				f.end()
			}
		}
		remove(t, direct, plant("rose"))
		time.Sleep(2 * time.Minute)
		areListsRefused = true
		served.set("plants", true, nil)
		time.Sleep(2 * time.Minute)
		calls.drain()
		setRound := func(g *Garden) error { g.Labels = map[string]string{"round": "2"}; return nil }
		if _, err := kube.Namespaced[Garden](direct, "default").Modify(t.Context(), "eden", setRound); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := calls.drain(); len(got) == 0 || got[len(got)-1] != "2 true" {
			t.Errorf("the kind is served again, and its list is refused: %q, want 2 true at last", got)
		}
	})
}

// Regression: a kind is served, which its stream has not found out yet. The program writes an object of the kind, and a
// second write of the object has an unknown outcome. A proxy that answers 404 for a moment made the object count as
// absent, although the program had the answer to its first write.
func TestWriteShowsThatAKindIsServed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		served := &crds{next: s, absent: map[string]bool{"plants": true}}
		create(t, s.client(), garden("eden"))
		isLost := false
		s.before = func(r *wire.Request) error {
			if isLost && r.Verb.IsWrite() {
				return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Unknown: true, Err: context.DeadlineExceeded}
			}
			return nil
		}
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			rose := kube.OwnedBy(g, plant("rose"))
			if _, err := kube.Apply(ctx, c, rose); err != nil {
				return controller.RequeueAfter(time.Second), nil
			}
			isLost = true
			_ = kube.Namespaced[Plant](c, g.Namespace).Delete(ctx, "rose")
			isLost = false
			served.set("plants", false, nil) // the proxy has no route
			_, err := kube.Namespaced[Plant](c, g.Namespace).Get(ctx, "rose")
			served.set("plants", true, nil)
			calls.record(fmt.Sprint(kube.IsNotFound(err)))
			return controller.Done(), nil
		}
		start(t, kube.NewClientFromHandler(served), controller.New(reconcile, controller.Owns[Plant](controller.IfServed())))
		time.Sleep(time.Second / 2)
		served.set("plants", true, nil)
		time.Sleep(10 * time.Second)
		if got := calls.drain(); len(got) == 0 || got[0] != "false" {
			t.Errorf("whether the written object is not found: %q, want false first", got)
		}
	})
}

// As long as discovery fails, a kind is not absent, and the controller does not start.
func TestIfServedWhileDiscoveryFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		served := &crds{next: s, absent: map[string]bool{"plants": true}, broken: errors.New("the server is unwell")}
		create(t, s.client(), garden("eden"))
		start(t, kube.NewClientFromHandler(served), controller.New(recordingNames(&calls), controller.Owns[Plant](controller.IfServed())))
		time.Sleep(10 * time.Minute)
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("reconciled before it is known whether the kind is served: %q", got)
		}
		served.set("plants", false, nil)
		time.Sleep(2 * time.Minute)
		if got := strings.Join(calls.drain(), " "); got != "eden" {
			t.Errorf("reconciled %q, want eden", got)
		}
	})
}

// A reconciled kind need not be served either.
func TestReconciledKindIfServed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		served := &crds{next: s, absent: map[string]bool{"gardens": true, "plants": true}}
		start(t, kube.NewClientFromHandler(served), controller.New(recordingNames(&calls), controller.Reconciled(controller.IfServed())))
		time.Sleep(10 * time.Minute)
		create(t, s.client(), garden("eden"))
		served.set("gardens", true, nil)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"eden"}, calls.drain()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
	})
}

// TestProxyThatKnowsNothingDeletesNoObjects has a proxy before the API server that answers everything with 404 for a
// minute. The objects of a kind that need not be served counted as deleted.
func TestProxyThatKnowsNothingDeletesNoObjects(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var away atomic.Bool
		c := kube.NewClientFromHandler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if away.Load() {
				return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: 404, Answer: metav1.Status{Status: "Failure", Code: 404, Message: "default backend - 404"}}
			}
			return (&crds{next: s, absent: map[string]bool{}}).Do(ctx, r)
		}))
		var gone journal
		create(t, s.client(), garden("eden"))
		start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Reconciled(controller.IfServed()), controller.OnGone(func(k kube.Key) { gone.record(k.Name) })))
		time.Sleep(time.Second)
		away.Store(true)
		for f := range s.feeds {
			f.end()
		}
		time.Sleep(time.Minute)
		away.Store(false)
		time.Sleep(time.Minute)
		if got := gone.drain(); len(got) > 0 {
			t.Errorf("gone: %q, although the object exists all the time", got)
		}
	})
}

// Regression: a kind that need not be served is selected by a label, and has a finalizer. The kind is removed with its
// objects. Its former objects were retried, and logged as errors, for ever.
func TestGoneKindWithSelectorIsNotRetried(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{}}
		c := kube.NewClientFromHandler(served)
		g := garden("eden")
		g.Labels = map[string]string{"shard": "1"}
		create(t, direct, g)
		var results journal
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Reconciled(controller.IfServed(), controller.Select(kube.Label("shard", "1"))), controller.OnResult(results.result)).
			Finalizer(finalizer, func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
				return controller.CleanupDone(), nil
			}))
		time.Sleep(time.Second)
		results.drainResults()
		served.set("gardens", false, nil)
		served.set("plants", false, nil)
		for f := range s.feeds {
			if f.plural == "gardens" {
				f.end()
			}
		}
		time.Sleep(2 * time.Hour)
		failed := 0
		for _, r := range results.drainResults() {
			if r.Err != nil {
				failed++
			}
		}
		if failed > 0 {
			t.Errorf("%d failed reconciles in two hours of an object whose kind is gone; log: %q", failed, p.log.lines(slog.LevelError))
		}
	})
}

// Regression: the reconciled kind is removed with its objects, and the garbage collector deletes their children. The
// deletion of a child puts its owner in doubt, because the watch of the owners does not show their end. The read of
// the owner failed because the kind was gone, and was repeated for ever.
func TestDoubtAboutAnObjectOfARemovedKind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		direct := s.client()
		served := &crds{next: s, absent: map[string]bool{}}
		c := kube.NewClientFromHandler(served)
		eden := create(t, direct, garden("eden"))
		create(t, direct, kube.OwnedBy(eden, plant("rose")))
		var results journal
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Reconciled(controller.IfServed()), controller.Owns[Plant](), controller.OnResult(results.result)))
		time.Sleep(time.Second)
		results.drainResults()
		served.set("gardens", false, nil)
		for f := range s.feeds {
			if f.plural == "gardens" {
				f.end()
			}
		}
		remove(t, direct, plant("rose"))
		time.Sleep(12 * time.Hour)
		failed := 0
		for _, r := range results.drainResults() {
			if r.Err != nil {
				failed++
			}
		}
		if failed > 3 {
			lines := p.log.lines(slog.LevelError)
			t.Errorf("%d failed reconciles in twelve hours of an object whose kind is gone; the last of %d lines of the log: %s", failed, len(lines), lines[len(lines)-1])
		}
	})
}
