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
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Only what matches the selector is reconciled, by whatever path, and only as long as it
// matches.
func TestForWithSelector(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		mine := garden("mine")
		mine.Labels = map[string]string{"gardener": "me"}
		create(t, c, mine)
		create(t, c, garden("theirs"))
		names := make(chan kube.Key, 2)
		start(t, c, controller.New(recordingNames(&calls), controller.Reconciled(controller.Select(kube.Label("gardener", "me"))),
			controller.Channel(names)))
		synctest.Wait()
		names <- kube.Key{Namespace: "default", Name: "theirs"}
		names <- kube.Key{Namespace: "default", Name: "mine"}
		synctest.Wait()
		if diff := cmp.Diff([]string{"mine", "mine"}, calls.drain()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
		mine.Labels["gardener"] = "you"
		apply(t, c, mine)
		synctest.Wait()
		names <- kube.Key{Namespace: "default", Name: "mine"}
		synctest.Wait()
		if got := calls.drain(); len(got) > 0 {
			t.Errorf("reconciled although it does not match any more: %q", got)
		}
	})
}

// A program that is narrowed to some namespaces reconciles nothing in others, whatever a map
// function returns, and makes no request there either.
func TestNamesElsewhere(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		for _, namespace := range []string{"default", "second", "third"} {
			g := garden("in-" + namespace)
			g.Namespace = namespace
			create(t, c, g)
		}
		p := start(t, c.InNamespaces("default", "second"), controller.New(recordingNames(&calls), watches(func(*Plant) []kube.Key {
			return []kube.Key{
				{Namespace: "third", Name: "in-third"}, {Namespace: "second", Name: "in-second"}, {Namespace: "default", Name: "nobody"},
				{Name: "without-namespace"}, {Namespace: "default"},
			}
		})))
		synctest.Wait()
		got := calls.drain()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"in-default", "in-second"}, got); diff != "" {
			t.Errorf("reconciled at the start (-want +got):\n%s", diff)
		}
		create(t, c, plant("rose"))
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"in-second"}, calls.drain()); diff != "" {
			t.Errorf("reconciled for the plant (-want +got):\n%s", diff)
		}
		if n := s.count(isGet); n > 0 {
			t.Errorf("%d reads were sent", n)
		}
		logs := p.log.lines(slog.LevelError)
		if len(logs) != 1 || !strings.Contains(logs[0], "without a namespace") {
			t.Errorf("the log has %q, want one line about the missing namespace", logs)
		}
	})
}

// What concerns an object by its label is found before and after the label changes, also
// in another namespace.
func TestWatchesByLabel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, garden("hortus"))
		start(t, c, controller.New(recordingNames(&calls), watchesMetadata(resourceOf[corev1.ConfigMap](t),
			func(m *metav1.PartialObjectMetadata) []kube.Key {
				return []kube.Key{{Namespace: "default", Name: m.Labels["garden"]}}
			})))
		synctest.Wait()
		calls.drain()
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "m", Labels: map[string]string{"garden": "eden"}}}
		create(t, c, m)
		synctest.Wait()
		m.Labels["garden"] = "hortus"
		apply(t, c, m)
		synctest.Wait()
		remove(t, c, m)
		synctest.Wait()
		got := calls.drain()
		slices.Sort(got[1:3])
		if diff := cmp.Diff([]string{"eden", "eden", "hortus", "hortus"}, got); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
	})
}

// Predicates on the record keep changes away that do not matter.
func TestPredicates(t *testing.T) {
	t.Parallel()
	spec := func(g *Garden) { g.Spec.Size++ }
	label := func(g *Garden) { g.Labels = map[string]string{"a": "b"} }
	annotation := func(g *Garden) { g.Annotations = map[string]string{"a": "b"} }
	finalizers := func(g *Garden) { g.Finalizers = []string{"other.example.com/x"} }
	for name, test := range map[string]struct {
		predicate controller.Predicate
		change    func(*Garden)
		want      int
	}{
		"generation, spec":       {controller.GenerationChanged, spec, 1},
		"generation, label":      {controller.GenerationChanged, label, 0},
		"labels, label":          {controller.LabelsChanged, label, 1},
		"labels, annotation":     {controller.LabelsChanged, annotation, 0},
		"annotations":            {controller.AnnotationsChanged, annotation, 1},
		"annotations, spec":      {controller.AnnotationsChanged, spec, 0},
		"finalizers":             {controller.FinalizersChanged, finalizers, 1},
		"finalizers, annotation": {controller.FinalizersChanged, annotation, 0},
		"any":                    {controller.Any(controller.GenerationChanged, controller.LabelsChanged), label, 1},
		"any, annotation":        {controller.Any(controller.GenerationChanged, controller.LabelsChanged), annotation, 0},
		"own": {func(c controller.Change) bool {
			return c.Type == controller.Added || c.After.Labels.Get("a") == "b"
		}, label, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				var calls journal
				c := s.client()
				g := garden("eden")
				create(t, c, g)
				start(t, c, controller.New(recordingNames(&calls), controller.Reconciled(controller.When(test.predicate))))
				synctest.Wait()
				if got := len(calls.drain()); got != 1 {
					t.Errorf("%d calls at the start, want 1", got)
				}
				test.change(g)
				apply(t, c, g)
				synctest.Wait()
				if got := len(calls.drain()); got != test.want {
					t.Errorf("%d calls, want %d", got, test.want)
				}
			})
		})
	}
}

// Controllers of one program share their streams, and each does its own work.
func TestControllersShareStreams(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var gardens, second, plants journal
		c := s.client()
		create(t, c, kube.OwnedBy(create(t, c, garden("eden")), plant("rose")))
		start(t, c,
			controller.New(recordingNames(&gardens), controller.Owns[Plant]()),
			controller.New(recordingNames(&second), controller.Name("second")),
			controller.New(func(_ context.Context, p *Plant, _ *kube.Client) (controller.Action, error) {
				plants.record(p.Name)
				return controller.Done(), nil
			}))
		synctest.Wait()
		for name, j := range map[string]*journal{"eden": &gardens, "eden ": &second, "rose": &plants} {
			if got := j.drain(); !slices.Equal(got, []string{strings.TrimSpace(name)}) {
				t.Errorf("reconciled: %q, want %q", got, name)
			}
		}
		if diff := cmp.Diff([]string{"gardens", "plants"}, s.watches()); diff != "" {
			t.Errorf("watches (-want +got):\n%s", diff)
		}
	})
}

// A source of the author's own that fails is run again, and can name a time.
func TestOwnSource(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		begin := time.Now()
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		runs := 0
		p := start(t, c, controller.New(func(context.Context, *Garden, *kube.Client) (controller.Action, error) {
			calls.record(time.Since(begin).String())
			return controller.Done(), nil
		}, controller.From(func(ctx context.Context, emit func(controller.Trigger)) error {
			if runs++; runs < 3 {
				return errors.New("no connection")
			}
			emit(controller.Trigger{Key: kube.Key{Namespace: "default", Name: "eden"}, Cause: "call", NotBefore: begin.Add(time.Hour)})
			emit(controller.Trigger{Key: kube.Key{Namespace: "default", Name: "nobody"}})
			emit(controller.Trigger{Key: kube.Key{Namespace: "default"}})
			<-ctx.Done()
			return nil
		}), controller.OnResult(calls.result)))
		time.Sleep(2 * time.Hour)
		if diff := cmp.Diff([]string{"0s", "1h0m0s"}, calls.drain()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if results := calls.drainResults(); len(results) != 2 || results[1].Causes != "call" {
			t.Errorf("results: %+v", results)
		}
		if got := len(p.log.lines(slog.LevelError)); got != 2 {
			t.Errorf("%d lines about the source, want 2", got)
		}
	})
}

// Promise 20: a result, and a line of the log, contain what led to a reconcile, what the
// reconcile read and wrote, and what comes next.
func TestResult(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			time.Sleep(time.Second)
			if _, err := kube.Get[Garden](ctx, c, "default", "eden"); err != nil {
				return controller.Done(), err
			}
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose"))); err != nil {
				return controller.Done(), err
			}
			g.Status.Size = g.Spec.Size
			err := c.ApplyStatus(ctx, g)
			time.Sleep(time.Second) // what was written comes back meanwhile
			return controller.RequeueAfter(time.Hour), err
		}, controller.Owns[Plant](), controller.OnResult(calls.result)))
		time.Sleep(time.Minute)
		var got []string
		for _, r := range calls.drainResults() {
			r.Causes = strings.Replace(r.Causes, "Garden default/eden modified, Plant default/rose added", "Plant default/rose added, Garden default/eden modified", 1)
			got = append(got, fmt.Sprint(r.Object, "; ", r.Causes, "; ", r.Duration, "; ", r.Reads, "; ", r.Writes, "; ", r.Next, "; ", r.Err))
		}
		want := []string{
			`gardens.test.example.com "default/eden"; Garden default/eden there at the start; 2s; 1; ` +
				`[patch plants.test.example.com "default/rose" patch gardens.test.example.com "default/eden" status]; 1h0m0s; <nil>`,
			`gardens.test.example.com "default/eden"; Plant default/rose added, Garden default/eden modified; 2s; 1; ` +
				`[patch plants.test.example.com "default/rose" (skipped) patch gardens.test.example.com "default/eden" status (skipped)]; 1h0m0s; <nil>`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		lines := p.log.lines(slog.LevelDebug)
		if len(lines) != 2 {
			t.Fatalf("%d lines with -v, want 2: %q", len(lines), lines)
		}
		for _, want := range []string{`cause="Garden default/eden there at the start"`, "wrote=", "took=2s", "next=1h0m0s", "name=eden"} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("the line %s has no %s", lines[0], want)
			}
		}
	})
}

// Only the metadata of Secrets is cached, so that reads are sent, unless a source asks for
// their contents. An apply that repeats the last one is skipped either way: it was sent in
// every reconcile, although the version proves that nothing has changed.
func TestSecretsAreKeptWhenAskedFor(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]controller.KindOption{"by default": nil, "asked for": {controller.KeepSecrets()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *server) {
				c := s.client()
				create(t, c, garden("eden"))
				names := make(chan kube.Key, 1)
				reconcile := func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
					secret := &corev1.Secret{
						ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}, StringData: map[string]string{"key": "value"},
					}
					if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, secret)); err != nil {
						return controller.Done(), err
					}
					_, err := kube.Get[corev1.Secret](ctx, c, g.Namespace, g.Name)
					return controller.Done(), err
				}
				start(t, c, controller.New(reconcile, controller.Owns[corev1.Secret](options...), controller.Channel(names)))
				synctest.Wait()
				time.Sleep(time.Minute)
				sent := func() int { return s.count(func(*wire.Request) bool { return true }) }
				before := sent()
				names <- kube.Key{Namespace: "default", Name: "eden"}
				synctest.Wait()
				if got, want := sent()-before, map[bool]int{true: 1, false: 0}[options == nil]; got != want {
					t.Errorf("an apply and a read made %d requests, want %d", got, want)
				}
				// Somebody edits the Secret.
				if _, err := kube.Namespaced[corev1.Secret](c, "default").Patch(t.Context(), "eden", kube.JSONPatch(kube.AddAt("/data/key", "b3RoZXI="))); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := s.object("secrets", "default", "eden")["data"].(object)["key"]; got != "dmFsdWU=" {
					t.Errorf("an edit of the Secret was not put right: the key is %v", got)
				}
			})
		})
	}
}
