package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// planting returns a controller whose Gardens each apply the Plant rose as their child, as tall
// as the Garden is large. watched is true if it watches Plants.
func planting(results *journal, watched bool, write []kube.ApplyOption, options ...controller.Option) *controller.Controller[Garden] {
	options = append(options, controller.OnResult(results.result), controller.FieldManager("us"))
	if watched {
		options = append(options, controller.Owns[Plant]())
	}
	return controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		p := plant("rose")
		p.Spec.Height = g.Spec.Size
		_, err := kube.Apply(ctx, c, kube.OwnedBy(g, p), write...)
		return controller.Done(), err
	}, options...)
}

// ownersOf returns the names of the controlling owners of the Plant rose.
func ownersOf(s *server) (names []string) {
	references, _ := meta(s.object("plants", "default", "rose"))["ownerReferences"].([]any)
	for _, each := range references {
		if o := each.(object); o["controller"] == true {
			names = append(names, o["name"].(string))
		}
	}
	return names
}

// roses returns the resource of the Plant rose.
func roses(t *testing.T) wire.Resource {
	t.Helper()
	kind, err := kube.TypeOf[Plant]()
	if err != nil {
		t.Fatal(err)
	}
	return kind.Resource
}

// adoptionCase is what has happened to a Plant named rose before the Garden eden applies it, and
// what becomes of it.
type adoptionCase struct {
	// before makes the Plant. It returns the Garden that applies. The Garden exists.
	before func(t *testing.T, s *server, c *kube.Client) *Garden
	write  []kube.ApplyOption
	option controller.Option
	// refused is a part of the error, if the apply is to be refused.
	refused string
	// kept is true if the Plant is to become a child without being deleted in between.
	kept bool
}

// Promise 22: an apply never makes somebody else's object a child of the reconciled object, with
// which the child would be deleted. The controller finds again what it made itself.
func TestAdoption(t *testing.T) {
	t.Parallel()
	somebodyElses := func(t *testing.T, _ *server, c *kube.Client) *Garden {
		create(t, c.WithFieldManager("kubectl"), plant("rose"))
		return create(t, c, garden("eden"))
	}
	// recreated deletes the Garden and creates it again. The garbage collector has not seen that.
	recreated := func(t *testing.T, c *kube.Client, old *Garden) *Garden {
		remove(t, c, old)
		return create(t, c, garden("eden"))
	}
	for name, test := range map[string]adoptionCase{
		"nothing was there": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden { return create(t, c, garden("eden")) },
			kept:   true,
		},
		"somebody else's": {before: somebodyElses, refused: "kube.Adopt()"},
		"somebody else's, adopted on purpose": {
			before: somebodyElses, write: []kube.ApplyOption{kube.Adopt()}, kept: true,
		},
		"another owner's": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				// The same program made it, for another Garden.
				apply(t, c.WithFieldManager("us"), kube.OwnedBy(create(t, c, garden("kew")), plant("rose")))
				return create(t, c, garden("eden"))
			},
			write: []kube.ApplyOption{kube.Adopt()}, refused: `"kew" controls it`,
		},
		"its own": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				g := create(t, c, garden("eden"))
				create(t, c.WithFieldManager("kubectl"), kube.OwnedBy(g, plant("rose")))
				return g
			},
			kept: true,
		},
		"its own, with a further owner": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				g := create(t, c, garden("eden"))
				p := kube.OwnedBy(g, plant("rose"))
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"})
				create(t, c.WithFieldManager("kubectl"), p)
				return g
			},
			kept: true,
		},
		"applied without an owner by an earlier release": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				apply(t, c.WithFieldManager("us"), plant("rose"))
				return create(t, c, garden("eden"))
			},
			kept: true,
		},
		"created under a former field manager, as every kubebuilder operator does": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				create(t, c.WithFieldManager("manager"), plant("rose"))
				return create(t, c, garden("eden"))
			},
			option: controller.FormerFieldManagers("manager"), refused: "kube.Adopt()",
		},
		"applied under a former field manager": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				apply(t, c.WithFieldManager("us-before"), plant("rose"))
				return create(t, c, garden("eden"))
			},
			option: controller.FormerFieldManagers("us-before"), kept: true,
		},
		"applied under a former field manager that is not declared": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				apply(t, c.WithFieldManager("us-before"), plant("rose"))
				return create(t, c, garden("eden"))
			},
			refused: "controller.FormerFieldManagers",
		},
		"its status alone is ours": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				p := create(t, c.WithFieldManager("kubectl"), plant("rose"))
				p.Status.Height = 1
				if err := c.WithFieldManager("us").ApplyStatus(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				return create(t, c, garden("eden"))
			},
			refused: "kube.Adopt()",
		},
		"the owner was deleted with --cascade=orphan and created again": {
			before: func(t *testing.T, s *server, c *kube.Client) *Garden {
				g := create(t, c, garden("eden"))
				apply(t, c.WithFieldManager("us"), kube.OwnedBy(g, plant("rose")))
				// The garbage collector takes the reference away before the owner goes.
				if _, err := kube.Namespaced[Plant](c.WithFieldManager("kube-controller-manager"), "default").Patch(t.Context(), "rose",
					kube.JSONPatch(kube.RemoveAt("/metadata/ownerReferences"))); err != nil {
					t.Fatal(err)
				}
				return recreated(t, c, g)
			},
			kept: true,
		},
		"the owner was created again, and the Plant is about to be deleted": {
			before: func(t *testing.T, _ *server, c *kube.Client) *Garden {
				g := create(t, c, garden("eden"))
				apply(t, c.WithFieldManager("us"), kube.OwnedBy(g, plant("rose")))
				return recreated(t, c, g)
			},
		},
		"restored with new uids and without managedFields": {
			before: func(t *testing.T, s *server, c *kube.Client) *Garden {
				p := kube.OwnedBy(&Garden{ObjectMeta: metav1.ObjectMeta{Name: "eden", UID: "in-the-backup"}}, plant("rose"))
				create(t, c.WithFieldManager("restore"), p)
				return create(t, c.WithFieldManager("restore"), garden("eden"))
			},
			kept: true,
		},
		"restored with new uids and the managedFields of the backup": {
			before: func(t *testing.T, s *server, c *kube.Client) *Garden {
				apply(t, c.WithFieldManager("us"), kube.OwnedBy(&Garden{ObjectMeta: metav1.ObjectMeta{Name: "eden", UID: "in-the-backup"}}, plant("rose")))
				backup := s.object("plants", "default", "rose")
				time.Sleep(time.Hour)
				s.Remove("plants", "default", "rose", nil)
				delete(meta(backup), "resourceVersion")
				delete(meta(backup), "uid")
				s.Store(roses(t), "default", "rose", backup)
				return create(t, c.WithFieldManager("restore"), garden("eden"))
			},
			kept: true,
		},
	} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watched %t", name, watched), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *server) { test.run(t, s, watched) })
			})
		}
	}
}

func (test adoptionCase) run(t *testing.T, s *server, watched bool) {
	var calls journal
	c := s.client()
	eden := test.before(t, s, c)
	before := s.object("plants", "default", "rose")
	if other := s.object("gardens", "default", "kew"); other != nil {
		s.Remove("gardens", "default", "kew", nil) // nobody reconciles it
	}
	var options []controller.Option
	if test.option != nil {
		options = append(options, test.option)
	}
	p := start(t, c, planting(&calls, watched, test.write, options...))
	time.Sleep(10 * time.Second)
	results := calls.drainResults()
	if test.refused != "" {
		for _, r := range results {
			if !errors.Is(r.Err, kube.ErrForeignChild) || !strings.Contains(fmt.Sprint(r.Err), test.refused) {
				t.Errorf("the apply led to %v, want %v that says %q", r.Err, kube.ErrForeignChild, test.refused)
			}
		}
		if now := s.object("plants", "default", "rose"); fmt.Sprint(now) != fmt.Sprint(before) {
			t.Errorf("a refused apply has changed the Plant from\n%v\nto\n%v", before, now)
		}
		return
	}
	if before != nil && !test.kept {
		if n := len(p.log.lines(slog.LevelError)); n > 0 || fmt.Sprint(s.object("plants", "default", "rose")) != fmt.Sprint(before) {
			t.Errorf("a Plant that is about to be deleted was not left alone quietly: %d lines, %v", n, s.object("plants", "default", "rose"))
		}
	}
	if n := s.CollectGarbage(); n > 0 == test.kept {
		t.Errorf("the garbage collector deleted %d objects", n)
	}
	time.Sleep(time.Hour)
	now := s.object("plants", "default", "rose")
	if now == nil || fmt.Sprint(ownersOf(s)) != "[eden]" {
		t.Fatalf("the Plant is %v", now)
	}
	if before != nil && (meta(now)["uid"] == meta(before)["uid"]) != test.kept {
		t.Errorf("the Plant was kept: %t, want %t", !test.kept, test.kept)
	}
	// It goes with its owner.
	remove(t, c, eden)
	if s.CollectGarbage(); s.object("plants", "default", "rose") != nil {
		t.Error("the Plant was not deleted with its owner")
	}
}

// Promise 22: what comes between the decision and the apply is never overwritten: the server
// refuses the apply, and it is decided again.
func TestAdoptionRaces(t *testing.T) {
	t.Parallel()
	isApply := func(r *wire.Request) bool { return r.ContentType == wire.ContentApply && r.Resource.Plural == "plants" }
	for name, between := range map[string]func(t *testing.T, s *server, c *kube.Client){
		"somebody creates the object": func(t *testing.T, s *server, c *kube.Client) {
			create(t, c.WithFieldManager("kubectl"), plant("rose"))
		},
		"somebody creates the object, with a field that the apply has": func(t *testing.T, s *server, c *kube.Client) {
			p := plant("rose")
			p.Spec.Height = 7
			create(t, c.WithFieldManager("kubectl"), p)
		},
		"somebody replaces the child": func(t *testing.T, s *server, c *kube.Client) {
			s.Remove("plants", "default", "rose", nil)
			create(t, c.WithFieldManager("kubectl"), plant("rose"))
		},
	} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watched %t", name, watched), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *server) {
					var calls journal
					c := s.client()
					g := create(t, c, garden("eden"))
					replaced := strings.Contains(name, "replaces")
					if replaced {
						create(t, c, kube.OwnedBy(g, plant("rose")))
					}
					done := false
					var theirs object
					s.before = func(r *wire.Request) error {
						if isApply(r) && !done {
							done = true
							between(t, s, c)
							theirs = s.object("plants", "default", "rose")
						}
						return nil
					}
					start(t, c, planting(&calls, watched, nil))
					if replaced { // so that there is something to apply
						g.Spec.Size = 3
						if _, err := kube.Namespaced[Garden](c, "default").Replace(t.Context(), g); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Minute)
					if results := calls.drainResults(); !done || len(results) == 0 || !errors.Is(results[len(results)-1].Err, kube.ErrForeignChild) {
						t.Errorf("the race happened: %t; results: %+v", done, results)
					}
					if now := s.object("plants", "default", "rose"); fmt.Sprint(now) != fmt.Sprint(theirs) {
						t.Errorf("somebody else's Plant was changed from\n%v\nto\n%v", theirs, now)
					}
				})
			})
		}
	}
}

// A child that no cache shows is read once for each uid; and one that was deleted meanwhile is
// created again.
func TestUnwatchedChildIsReadOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		g := create(t, c, garden("eden"))
		start(t, c, planting(&calls, false, nil))
		reads := func() int {
			return s.count(func(r *wire.Request) bool { return r.Verb == wire.VerbGet && r.Resource.Plural == "plants" })
		}
		edit := func(size int) {
			t.Helper()
			if _, err := kube.Namespaced[Garden](c, "default").Patch(t.Context(), g.Name, kube.JSONPatch(kube.ReplaceAt("/spec/size", size))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := s.object("plants", "default", "rose")["spec"].(object)["height"]; got != int64(size) {
				t.Errorf("the Plant is %v tall, want %d", got, size)
			}
		}
		for size := range 5 {
			edit(size + 2)
		}
		if n := reads(); n != 1 {
			t.Errorf("%d reads of the child, want 1", n)
		}
		s.Remove("plants", "default", "rose", nil)
		edit(10)
		edit(11)
		if n := reads(); n != 2 {
			t.Errorf("%d reads of two children, want 2", n)
		}
		for _, r := range calls.drainResults() {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	})
}

// Creating a child in a namespace that is being deleted is no error: the owner will go too. It
// was reported as one.
func TestChildInTerminatingNamespace(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		s.before = func(r *wire.Request) error {
			if !r.Verb.IsWrite() || r.Resource.Plural != "plants" {
				return nil
			}
			err := fakeserver.Refusal(r, http.StatusForbidden, metav1.StatusReasonForbidden)
			err.Answer.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Field: "metadata.namespace"}}
			return err
		}
		p := start(t, c, planting(&calls, true, nil))
		time.Sleep(30 * time.Second)
		if lines := p.log.lines(slog.LevelError); len(lines) > 0 {
			t.Errorf("the log has %q", lines)
		}
		if results := calls.drainResults(); len(results) < 2 || results[0].Outcome() != controller.OutcomeConflict {
			t.Errorf("results: %+v; want quiet repetitions", results)
		}
	})
}
