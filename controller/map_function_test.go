package controller_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// bed returns a garden with a label.
func bed(name, bed string) *Garden {
	g := garden(name)
	g.Labels = map[string]string{"bed": bed}
	return g
}

// rules returns a ConfigMap that concerns all gardens of a bed.
func rules(bed string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rules"}, Data: map[string]string{"bed": bed}}
}

// gardensOfBed maps a ConfigMap to the gardens that it selects by a label.
func gardensOfBed(ctx context.Context, m *corev1.ConfigMap, c *kube.Client) ([]kube.Key, error) {
	gardens, err := kube.Namespaced[Garden](c, m.Namespace).List(ctx, kube.Label("bed", m.Data["bed"]))
	return kube.KeysOf(gardens...), err
}

// A map function selects objects by the content of an object before and after a change, and its
// reads make no requests. At the start it finds all objects, although the stream of the reconciled
// kind is the last one to be synced.
func TestMapFunctionReadsFromTheCache(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, bed("rose", "a"))
		create(t, c, bed("fern", "a"))
		create(t, c, bed("moss", "b"))
		create(t, c, rules("a"))
		s.unsynced["gardens"] = true
		var found atomic.Int32
		start(t, c, controller.New(recordingNames(&calls), controller.Reconciled(controller.When(controller.GenerationChanged)),
			controller.Watches(func(ctx context.Context, m *corev1.ConfigMap, c *kube.Client) ([]kube.Key, error) {
				keys, err := gardensOfBed(ctx, m, c)
				found.Store(int32(len(keys)))
				return keys, err
			})))
		time.Sleep(time.Minute)
		if n := found.Load(); n > 0 {
			t.Errorf("the map function was called before all streams were synced, and found %d gardens", n)
		}
		s.sync("gardens")
		time.Sleep(time.Minute)
		if n := found.Load(); n != 2 {
			t.Errorf("at the start the map function found %d gardens, want 2", n)
		}
		calls.drain()
		before := s.count(func(*wire.Request) bool { return true })
		apply(t, c, rules("b"))
		time.Sleep(time.Minute)
		got := calls.drain()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"fern", "moss", "rose"}, got); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
		if n := s.count(func(*wire.Request) bool { return true }) - before - 1; n > 0 {
			t.Errorf("the map function made %d requests", n)
		}
	})
}

// An error of a map function is logged and retried, and no trigger is lost, not even the
// trigger of the state before the change. Keys that come with an error count.
func TestErrorOfAMapFunction(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, bed("rose", "a"))
		create(t, c, bed("moss", "b"))
		create(t, c, bed("oak", "c"))
		create(t, c, rules("a"))
		var isBroken atomic.Bool
		p := start(t, c, controller.New(recordingNames(&calls), controller.Watches(func(ctx context.Context, m *corev1.ConfigMap, c *kube.Client) ([]kube.Key, error) {
			if isBroken.Load() {
				return []kube.Key{{Namespace: "default", Name: "oak"}}, errors.New("the almanac is missing")
			}
			return gardensOfBed(ctx, m, c)
		})))
		synctest.Wait()
		calls.drain()
		isBroken.Store(true)
		apply(t, c, rules("b"))
		synctest.Wait()
		if diff := cmp.Diff([]string{"oak"}, calls.drain()); diff != "" {
			t.Errorf("reconciled for the keys that came with the error (-want +got):\n%s", diff)
		}
		if logs := strings.Join(p.log.lines(slog.LevelError), ""); !strings.Contains(logs, "the almanac is missing") || !strings.Contains(logs, "name=rules") {
			t.Errorf("the log: %q", logs)
		}
		time.Sleep(10 * time.Minute)
		calls.drain()
		isBroken.Store(false)
		time.Sleep(30 * time.Minute)
		got := calls.drain()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"moss", "rose"}, slices.Compact(got)); diff != "" {
			t.Errorf("reconciled once the map function works (-want +got):\n%s", diff)
		}
	})
}

// A map function neither writes nor makes requests. The error names what the function tried, and the remedy.
func TestMapFunctionIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do      func(ctx context.Context, c *kube.Client) error
		options []controller.Option
		want    []string
	}{
		"write": {do: func(ctx context.Context, c *kube.Client) error {
			_, err := kube.Apply(ctx, c, plant("rose"))
			return err
		}, want: []string{"patch plants", "write in the reconcile"}},
		"get": {do: func(ctx context.Context, c *kube.Client) error {
			_, err := kube.Get[Plant](ctx, c, "default", "rose")
			return err
		}, want: []string{"get plants", `default/rose`, "controller.Owns or controller.Watches of the kind Plant"}},
		"list": {do: func(ctx context.Context, c *kube.Client) error {
			_, err := kube.Everywhere[Plant](c).List(ctx)
			return err
		}, want: []string{"list plants", "controller.Owns or controller.Watches of the kind Plant"}},
		"list of a selection": {do: func(ctx context.Context, c *kube.Client) error {
			_, err := kube.Everywhere[Plant](c).List(ctx)
			return err
		}, options: []controller.Option{controller.Owns[Plant](controller.Select(kube.LabelExists("garden")))}, want: []string{"list plants", "without controller.Select"}},
		"secret": {do: func(ctx context.Context, c *kube.Client) error {
			_, err := kube.Get[corev1.Secret](ctx, c, "default", "key")
			return err
		}, options: []controller.Option{controller.Owns[corev1.Secret]()}, want: []string{"get secrets", "controller.KeepSecrets"}},
		"watch": {do: func(ctx context.Context, c *kube.Client) error {
			for _, err := range kube.Everywhere[Garden](c).Watch(ctx, "1") {
				return err
			}
			return nil
		}, want: []string{"watch gardens"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				create(t, c, rules("a"))
				var refused atomic.Pointer[error]
				before := 0
				start(t, c, controller.New(recordingNames(new(journal)), append(test.options,
					controller.Watches(func(ctx context.Context, _ *corev1.ConfigMap, c *kube.Client) ([]kube.Key, error) {
						before = len(s.Requests())
						err := test.do(ctx, c)
						refused.Store(&err)
						if n := len(s.Requests()) - before; n > 0 {
							t.Errorf("%d requests were made", n)
						}
						return nil, nil
					}))...))
				synctest.Wait()
				err := *refused.Load()
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range append(test.want, "in a map function") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error %q does not contain %q", err, want)
					}
				}
			})
		})
	}
}
