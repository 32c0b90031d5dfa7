package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// onServer gives a test the gardens and plants of a real server, in a namespace of its own.
func onServer(t *testing.T) (*kube.Client, func(name string) *Garden) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a control plane")
	}
	cluster := yaretest.Shared(t)
	for _, each := range []func() (kube.Type, error){kube.TypeOf[Garden], kube.TypeOf[Plant]} {
		kind, err := each()
		if err != nil {
			t.Fatal(err)
		}
		cluster.Define(t, kind)
	}
	namespace := cluster.Namespace(t)
	return cluster.Client(t).InNamespaces(namespace), func(name string) *Garden {
		g := garden(name)
		g.Namespace = namespace
		return g
	}
}

// Promise 17, as a real server decides: others change the finalizers, or delete the object,
// while ours is on its way.
func TestFinalizerOnARealServer(t *testing.T) {
	c, garden := onServer(t)
	set := func(name string, finalizers ...string) {
		g := garden(name)
		if _, err := kube.Namespaced[Garden](c, g.Namespace).Patch(t.Context(), name,
			kube.JSONPatch(kube.AddAt("/metadata/finalizers", finalizers))); err != nil {
			t.Error(err)
		}
	}
	meanwhile := map[string]func(){
		"alone":   func() {},
		"quicker": func() { set("quicker", finalizer) },
		"beside":  func() { set("beside", "other.example.com/x") },
		"gone":    func() { remove(t, c, garden("gone")) },
		"going": func() {
			set("going", "other.example.com/x")
			remove(t, c, garden("going"))
		},
		"anew": func() {
			remove(t, c, garden("anew"))
			create(t, c, garden("anew"))
		},
	}
	want := map[string]string{
		"alone": "[test.example.com/cleanup]", "quicker": "[test.example.com/cleanup]",
		"beside": "[other.example.com/x test.example.com/cleanup]", "going": "[other.example.com/x]",
		"anew": "[test.example.com/cleanup]",
	}
	for name := range meanwhile {
		create(t, c, garden(name))
	}
	var done [6]atomic.Bool
	index := map[string]int{"alone": 0, "quicker": 1, "beside": 2, "gone": 3, "going": 4, "anew": 5}
	held := c.With(func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.ContentType == wire.ContentJSONPatch && !done[index[r.Name]].Swap(true) {
				meanwhile[r.Name]()
			}
			return next.Do(ctx, r)
		})
	})
	var calls journal
	p := start(t, held, gardening(&calls))
	finalizers := func(name string) string {
		g, err := kube.Get[Garden](t.Context(), c, garden(name).Namespace, name)
		if err != nil {
			return ""
		}
		return fmt.Sprint(g.Finalizers)
	}
	yaretest.Eventually(t, func() error {
		for name := range meanwhile {
			if !done[index[name]].Load() {
				return fmt.Errorf("%s: no patch yet", name)
			}
			if got := finalizers(name); got != want[name] {
				return fmt.Errorf("%s: the finalizers are %s, want %s", name, got, want[name])
			}
		}
		return nil
	})
	for _, line := range calls.drain() {
		if !strings.HasPrefix(line, "reconcile") || !strings.Contains(line, finalizer) {
			t.Errorf("called: %s", line)
		}
	}
	for _, name := range []string{"alone", "quicker", "anew"} {
		remove(t, c, garden(name))
	}
	yaretest.Eventually(t, func() error {
		for _, name := range []string{"alone", "quicker", "anew"} {
			if got := finalizers(name); got != "" {
				return fmt.Errorf("%s is still there: %s", name, got)
			}
		}
		return nil
	})
	if logs := p.log.lines(slog.LevelError); len(logs) > 0 {
		t.Errorf("the log has %q", logs)
	}
	set("beside")
}

// Promise 16, as a real server decides: the status of an object that was created anew meanwhile
// is refused quietly. A conflict with another manager and AlreadyExists are logged.
func TestConflictsOnARealServer(t *testing.T) {
	c, garden := onServer(t)
	for _, name := range []string{"anew", "changed", "owned", "exists"} {
		create(t, c, garden(name))
	}
	var done journal
	first := func(name string) bool {
		done.mu.Lock()
		defer done.mu.Unlock()
		for _, r := range done.results {
			if r.Object.Name == name {
				return false
			}
		}
		return true
	}
	reconcile := func(ctx context.Context, g *Garden, client *kube.Client) (controller.Action, error) {
		if !first(g.Name) {
			return controller.Done(), nil
		}
		var err error
		switch g.Name {
		case "anew":
			remove(t, c, garden("anew"))
			create(t, c, garden("anew"))
			g.Status.Size = 1
			err = client.ApplyStatus(ctx, g)
		case "changed":
			change := garden("changed")
			change.Spec.Size = 7
			apply(t, c, change)
			g.Status.Size = 1
			err = client.ApplyStatus(ctx, g)
		case "owned":
			change := garden("owned")
			change.Spec.Size = 7
			_, err = kube.Apply(ctx, client, change, kube.NoForce())
		case "exists":
			_, err = kube.Everywhere[Garden](client).Create(ctx, garden("exists"))
		}
		return controller.Done(), err
	}
	p := start(t, c, controller.New(reconcile, controller.Concurrency(1), controller.OnResult(done.result)).
		Backoff(func(*Garden, error, int) time.Duration { return time.Hour }))
	want := map[string]controller.Outcome{
		"anew": controller.OutcomeConflict, "changed": controller.OutcomeConflict, "owned": controller.OutcomeError, "exists": controller.OutcomeError,
	}
	yaretest.Eventually(t, func() error {
		done.mu.Lock()
		defer done.mu.Unlock()
		for name, outcome := range want {
			i := 0
			for ; i < len(done.results) && done.results[i].Object.Name != name; i++ {
			}
			if i == len(done.results) {
				return fmt.Errorf("%s was not reconciled", name)
			}
			if r := done.results[i]; r.Outcome() != outcome {
				t.Errorf("%s: %s (%v), want %s", name, r.Outcome(), r.Err, outcome)
			}
		}
		return nil
	})
	if logs := p.log.lines(slog.LevelError); len(logs) != 2 {
		t.Errorf("the log has %q, want two lines", logs)
	}
}

// Promise 11 and 14 in the small, as a real server shows them: a child that is deleted comes
// back, and goes with its owner.
func TestChildComesBack(t *testing.T) {
	c, garden := onServer(t)
	owner := create(t, c, garden("eden"))
	start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		_, err := kube.Apply(ctx, c, kube.OwnedBy(g, &Plant{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "rose"}}))
		return controller.Done(), err
	}, controller.Owns[Plant]()))
	get := func() (*Plant, error) { return kube.Get[Plant](t.Context(), c, owner.Namespace, "rose") }
	var before *Plant
	yaretest.Eventually(t, func() (err error) { before, err = get(); return err })
	remove(t, c, before)
	yaretest.Eventually(t, func() error {
		now, err := get()
		if err == nil && now.UID == before.UID {
			err = fmt.Errorf("it is still the old one")
		}
		return err
	})
	remove(t, c, owner)
	yaretest.Eventually(t, func() error {
		if _, err := get(); !kube.IsNotFound(err) {
			return fmt.Errorf("the child is still there (%v)", err)
		}
		return nil
	})
}

// A server accepts a finalizer without a slash for a custom resource, and refuses it for a kind of its own.
func TestFinalizerWithoutADomainOnARealServer(t *testing.T) {
	c, garden := onServer(t)
	g := garden("eden")
	g.Finalizers = []string{"former.example.com"}
	create(t, c, g)
	remove(t, c, g)
	create(t, c, garden("babylon"))
	var calls journal
	start(t, c, controller.New(doNothing[Garden]).Finalizer("finalizer.example.com", func(_ context.Context, g *Garden, _ *kube.Client) (controller.Cleanup, error) {
		calls.record("cleanup " + g.Name)
		return controller.CleanupDone(), nil
	}).FormerFinalizers("former.example.com"))
	gardens := kube.Namespaced[Garden](c, g.Namespace)
	yaretest.WaitUntilGone(t, gardens, "eden")
	yaretest.WaitFor(t, gardens, "babylon", func(g *Garden) error {
		if !slices.Equal(g.Finalizers, []string{"finalizer.example.com"}) {
			return fmt.Errorf("it has the finalizers %q", g.Finalizers)
		}
		return nil
	})
	remove(t, c, garden("babylon"))
	yaretest.WaitUntilGone(t, gardens, "babylon")
	if got := calls.drain(); !slices.Equal(got, []string{"cleanup eden", "cleanup babylon"}) {
		t.Errorf("calls: %q", got)
	}
	builtin := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "a", Finalizers: []string{"finalizer.example.com"}}}
	if _, err := kube.Everywhere[corev1.ConfigMap](c).Create(t.Context(), builtin); !kube.IsInvalid(err) {
		t.Errorf("the server's answer for a kind of its own: %v", err)
	}
}
