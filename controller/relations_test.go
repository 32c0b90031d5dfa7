package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// With AnyOwner, an owner reference that is not the controlling one counts too.
func TestAnyOwner(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []controller.KindOption
		want    []string
	}{
		"any owner":         {[]controller.KindOption{controller.AnyOwner()}, []string{"eden", "hortus"}},
		"controlling owner": {nil, []string{"eden"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				eden, hortus := create(t, c, garden("eden")), create(t, c, garden("hortus"))
				start(t, c, controller.New(recordingNames(&calls), controller.Owns[Plant](test.options...)))
				synctest.Wait()
				calls.drain()
				rose := kube.OwnedBy(eden, plant("rose"))
				rose.OwnerReferences = append(rose.OwnerReferences, metav1.OwnerReference{APIVersion: "test.example.com/v1", Kind: "Garden", Name: "hortus", UID: hortus.UID})
				create(t, c, rose)
				synctest.Wait()
				got := calls.drain()
				slices.Sort(got)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("reconciled (-want +got):\n%s", diff)
				}
			})
		})
	}
}

const ownerLabel = "test.example.com/owner-uid"

// A child in another namespace, and one outside of namespaces, run the reconcile of the owner whose
// uid they have in a label, whatever the length of its name. The cleanup is called again when a child is gone.
func TestOwnsByLabel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		name := strings.Repeat("eden-", 30) + "x"
		create(t, c, garden(name))
		create(t, c, garden("hortus"))
		elsewhere := func(g *Garden) *Plant {
			p := plant("rose")
			p.Namespace = "elsewhere"
			return kube.OwnedByLabel(g, ownerLabel, p)
		}
		reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if g.Name != name {
				return controller.Done(), nil
			}
			calls.record("reconcile")
			if _, err := kube.Apply(ctx, c, elsewhere(g)); err != nil {
				return controller.Done(), err
			}
			_, err := kube.Apply(ctx, c, kube.OwnedByLabel(g, ownerLabel, &Country{ObjectMeta: metav1.ObjectMeta{Name: "arcadia"}}))
			return controller.Done(), err
		}
		cleanup := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Cleanup, error) {
			plants, err := kube.Everywhere[Plant](c).List(ctx, kube.Label(ownerLabel, string(g.UID)))
			calls.record(fmt.Sprint("cleanup ", len(plants)))
			if err != nil || len(plants) == 0 {
				return controller.CleanupDone(), err
			}
			return controller.CleanupPending(), nil
		}
		p := start(t, c, controller.New(reconcile, controller.OwnsByLabel[Plant](ownerLabel), controller.OwnsByLabel[Country](ownerLabel)).
			Finalizer(finalizer, cleanup))
		expect := func(what string, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			if diff := cmp.Diff(want, slices.Compact(calls.drain())); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", what, diff)
			}
		}
		expect("the start", "reconcile")
		writes := func() int { return s.count(func(r *wire.Request) bool { return r.Verb.IsWrite() }) }
		before := writes()
		remove(t, c, &Country{ObjectMeta: metav1.ObjectMeta{Name: "arcadia"}})
		expect("the child outside of namespaces is deleted", "reconcile")
		if s.object("countries", "", "arcadia") == nil {
			t.Error("the child outside of namespaces did not come back")
		}
		if n := writes() - before; n != 2 { // the deletion, and the child that comes back
			t.Errorf("%d writes, want 2: an apply of a child that has not changed is not sent", n)
		}
		remove(t, c, garden(name))
		expect("the deletion", "cleanup 1")
		remove(t, c, func() *Plant { p := plant("rose"); p.Namespace = "elsewhere"; return p }())
		expect("the child is gone", "cleanup 0")
		if s.object("gardens", "default", name) != nil {
			t.Error("the owner is still there")
		}
		if logs := p.log.lines(slog.LevelError); len(logs) > 0 {
			t.Errorf("the log has %q", logs)
		}
	})
}

// Promise 22 for children by label: an object that somebody else made is not taken over.
func TestAdoptionByLabel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		theirs := plant("rose")
		theirs.Namespace, theirs.Spec.Height = "elsewhere", 7
		create(t, c.WithFieldManager("somebody"), theirs)
		create(t, c, garden("eden"))
		var refused error
		start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			mine := plant("rose")
			mine.Namespace = "elsewhere"
			_, refused = kube.Apply(ctx, c, kube.OwnedByLabel(g, ownerLabel, mine))
			return controller.Done(), nil
		}, controller.OwnsByLabel[Plant](ownerLabel)))
		synctest.Wait()
		if !errors.Is(refused, kube.ErrForeignChild) {
			t.Errorf("the apply returned %v", refused)
		}
	})
}

// A source is watched in its own namespaces, beside kinds that are watched everywhere.
func TestNamespacesOfASource(t *testing.T) {
	t.Parallel()
	settings := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "eden"}}
	}
	for name, test := range map[string]struct {
		option controller.KindOption
		want   []string
	}{
		"namespaces":    {controller.InNamespaces("one", "two"), []string{"one", "two"}},
		"own namespace": {controller.InOwnNamespace(), []string{"own"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls, mapped journal
				c := s.client()
				create(t, c, garden("eden"))
				run(t, c, "own", controller.New(recordingNames(&calls), watches(func(m *corev1.ConfigMap) []kube.Key {
					mapped.record(m.Namespace)
					return []kube.Key{{Namespace: "default", Name: "eden"}}
				}, test.option)))
				synctest.Wait()
				for _, namespace := range []string{"default", "one", "own", "two"} {
					create(t, c, settings(namespace))
					synctest.Wait()
				}
				if diff := cmp.Diff(test.want, mapped.drain()); diff != "" {
					t.Errorf("namespaces of changes that counted (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Without a namespace of the program, its own namespace is an error that names the remedy.
func TestOwnNamespaceIsNotKnown(t *testing.T) {
	t.Parallel()
	c := newServer().client()
	caches := cache.New(c)
	defer caches.Close()
	err := controller.New(recordingNames(new(journal)), controller.Owns[Plant](controller.InOwnNamespace())).
		Start(t.Context(), &controller.Runtime{Client: c, Cache: caches})
	if err == nil || !strings.Contains(err.Error(), "plants") || !strings.Contains(err.Error(), "POD_NAMESPACE") {
		t.Errorf("the error is %v", err)
	}
}

// run runs a controller in a program that has a namespace, until the end of t.
func run(t *testing.T, c *kube.Client, namespace string, p part) {
	t.Helper()
	caches := cache.New(c)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- p.Start(ctx, &controller.Runtime{Client: c, Cache: caches, Namespace: namespace, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		caches.Close()
	})
}
