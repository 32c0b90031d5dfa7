package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
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
)

// gardenOf returns the key of the garden that a plant names in its label.
func gardenOf(p *Plant) []kube.Key {
	return []kube.Key{{Namespace: p.Namespace, Name: p.Labels["garden"]}}
}

// plantIn returns a plant that names a garden.
func plantIn(garden string) *Plant {
	p := plant("rose")
	p.Labels = map[string]string{"garden": garden}
	return p
}

// Regression: a map function of one controller ran in the goroutine of the stream, which all
// controllers share. Other controllers learnt of a change minutes later.
func TestASlowMapFunctionHoldsUpNoOtherController(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		slow := controller.New(func(context.Context, *Country, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, watches(func(*Garden) []kube.Key {
			time.Sleep(time.Minute)
			return nil
		}))
		var quick journal
		start(t, c, slow, controller.New(recordingNames(&quick)))
		time.Sleep(10 * time.Minute)
		quick.drain()
		for i := range 5 {
			create(t, c, garden(fmt.Sprint("new", i)))
		}
		synctest.Wait()
		if got := len(quick.drain()); got != 5 {
			t.Errorf("the other controller has reconciled %d new objects at once, want 5", got)
		}
		time.Sleep(10 * time.Minute)
	})
}

// Every object that a watched object concerned at some time is reconciled, also if the watched
// object changed again and again before the map function was called for it.
func TestStatesThatWereReplacedBeforeTheyWereMapped(t *testing.T) {
	t.Parallel()
	gardens := []string{"a", "b", "c", "d", "e"}
	for name, test := range map[string]struct {
		options []controller.KindOption
		deleted bool
		repeat  int
	}{
		"changes":            {repeat: 1},
		"a deletion at last": {repeat: 1, deleted: true},
		"many changes":       {repeat: 10},
		"changes that do not count": {repeat: 1, options: []controller.KindOption{controller.When(func(c controller.Change) bool {
			return c.Type == controller.Added || c.Before.Labels.Get("garden") == "a"
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				for _, name := range gardens {
					create(t, c, garden(name))
				}
				var isQuick atomic.Bool
				start(t, c, controller.New(recordingNames(&calls), watches(func(p *Plant) []kube.Key {
					if !isQuick.Load() {
						time.Sleep(time.Minute)
					}
					return gardenOf(p)
				}, test.options...)))
				synctest.Wait()
				calls.drain()
				rose := plantIn(gardens[0])
				create(t, c, rose)
				for range test.repeat {
					for _, name := range gardens {
						rose.Labels["garden"] = name
						apply(t, c, rose)
						synctest.Wait()
					}
				}
				if test.deleted {
					remove(t, c, rose)
				}
				isQuick.Store(true)
				time.Sleep(time.Hour)
				got := calls.drain()
				slices.Sort(got)
				if diff := cmp.Diff(gardens, slices.Compact(got)); diff != "" {
					t.Errorf("reconciled (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Promise 11: nothing is reconciled before the map functions have returned what the objects
// that existed at the start concern, or have failed.
func TestStartWaitsForMapFunctions(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, plantIn("eden"))
		bad := plantIn("eden")
		bad.Name = "bad"
		create(t, c, bad)
		mapped := 0
		start(t, c, controller.New(recordingNames(&calls), watches(func(p *Plant) []kube.Key {
			if mapped++; mapped <= 2 {
				time.Sleep(time.Minute)
			}
			if p.Name == "bad" {
				panic("no garden")
			}
			return gardenOf(p)
		}), controller.OnResult(calls.result)))
		time.Sleep(119 * time.Second)
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("reconciled before everything was mapped: %q", got)
		}
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff([]string{"eden"}, calls.drain()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
		if got := calls.drainResults()[0].Causes; !strings.Contains(got, "Plant default/rose there at the start") {
			t.Errorf("causes: %s", got)
		}
	})
}

// A map function that ends its goroutine loses neither the trigger nor later triggers.
func TestGoexitInAMapFunction(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		var exits atomic.Int32
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(recordingNames(&calls), controller.Reconciled(controller.When(never)), watches(func(p *Plant) []kube.Key {
			if exits.Add(1) < 3 {
				runtime.Goexit()
			}
			return gardenOf(p)
		})))
		synctest.Wait()
		create(t, c, plantIn("eden"))
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"eden"}, calls.drain()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
		if logs := p.log.lines(slog.LevelError); len(logs) == 0 || !strings.Contains(logs[0], "Goexit") || !strings.Contains(logs[0], "name=rose") {
			t.Errorf("the log: %q", logs)
		}
	})
}

// The end of the program waits for a map function within the grace, and reports one that does
// not return.
func TestShutdownWaitsForMapFunctions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		duration time.Duration
		want     string
	}{
		"returns":      {duration: 10 * time.Second},
		"takes longer": {duration: time.Minute, want: "a map function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var returned atomic.Bool
				c := s.client()
				create(t, c, plantIn("eden"))
				p := start(t, c, controller.New(recordingNames(new(journal)), watches(func(*Plant) []kube.Key {
					time.Sleep(test.duration)
					returned.Store(true)
					return nil
				})))
				synctest.Wait()
				errs := p.stop()
				if (len(errs) == 0) != (test.want == "") || returned.Load() != (test.want == "") {
					t.Errorf("ended with %v; the function has returned: %t", errs, returned.Load())
				}
				for _, err := range errs {
					if !strings.Contains(err.Error(), test.want) {
						t.Errorf("the error %q does not contain %q", err, test.want)
					}
				}
				p.stop = func() []error { return nil }
				time.Sleep(time.Minute)
			})
		})
	}
}

// Regression: an index function panicked for an object. Then a change of what the object
// refers to was lost for it.
func TestPanicInAnIndexFunctionLosesNoTrigger(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		var isBroken atomic.Bool
		isBroken.Store(true)
		soil := kube.NewIndex("soil", func(g *Garden) []string {
			if isBroken.Load() && g.Name == "eden" {
				panic("no soil")
			}
			return []string{g.Name + "-soil"}
		})
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, garden("hortus"))
		start(t, c, controller.New(recordingNames(&calls), controller.WatchesReferenced[corev1.ConfigMap](soil)))
		synctest.Wait()
		calls.drain()
		expect := func(name string, want ...string) {
			t.Helper()
			create(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
			synctest.Wait()
			got := calls.drain()
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reconciled for %s (-want +got):\n%s", name, diff)
			}
		}
		expect("eden-soil", "eden")
		expect("hortus-soil", "eden", "hortus")
		isBroken.Store(false)
		change := garden("eden")
		change.Spec.Size = 2
		apply(t, c, change)
		synctest.Wait()
		calls.drain()
		expect("other-soil")
	})
}

// A key names its cluster: a trigger for an object of another cluster, whatever its name, does
// not reach the object of the home cluster.
func TestTriggersOfAnotherCluster(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		keys := make(chan kube.Key, 2)
		start(t, c, controller.New(recordingNames(&calls), controller.Channel(keys), watches(func(*Plant) []kube.Key {
			return []kube.Key{{Cluster: "west", Namespace: "default", Name: "eden"}}
		})))
		synctest.Wait()
		calls.drain()
		keys <- kube.Key{Cluster: "west", Namespace: "default", Name: "eden"}
		create(t, c, plant("rose"))
		synctest.Wait()
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("reconciled: %q", got)
		}
	})
}
