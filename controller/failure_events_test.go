package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// recordedEvents are the events that controllers have recorded.
type recordedEvents struct {
	mu    sync.Mutex
	lines []string
}

func (r *recordedEvents) Warning(obj kube.Object, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	r.lines = append(r.lines, fmt.Sprint(apiVersion, " ", kind, " ", obj.GetNamespace(), "/", obj.GetName(), " ", obj.GetUID() != "", " ",
		reason, " ", action, ": ", fmt.Sprintf(note, args...)))
}

func (r *recordedEvents) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// Regression: who may not read the log of the program did not learn why an object was stuck: it had no event. A failure of a moment
// makes none.
func TestEventsOfObjectsThatFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, recorded, began := fakeserver.New(), &recordedEvents{}, time.Now()
		client := server.Client()
		for _, name := range []string{"brief", "lasting", "terminal", "hanging"} {
			if _, err := kube.Everywhere[Garden](client).Create(t.Context(), garden(name)); err != nil {
				t.Fatal(err)
			}
		}
		observer := make(statsObserver, 1)
		ctx, cancel := context.WithCancel(t.Context())
		reconcile := func(ctx context.Context, g *Garden, _ *kube.Client) (controller.Action, error) {
			switch {
			case g.Name == "brief" && time.Since(began) < time.Minute, g.Name == "lasting":
				return controller.Done(), errors.New("the well is dry")
			case g.Name == "terminal":
				return controller.Done(), controller.Terminal(errors.New("no such plant"))
			case g.Name == "hanging":
				<-ctx.Done()
			}
			return controller.Done(), nil
		}
		caches := cache.New(client)
		var running sync.WaitGroup
		running.Go(func() {
			err := controller.New(reconcile).Start(ctx, &controller.Runtime{Client: client, Cache: caches, Events: recorded, Observer: observer})
			if err != nil {
				t.Error(err)
			}
		})
		time.Sleep(2 * time.Minute)
		if want := "ReconcileFailed Reconcile: no such plant. It is tried again after a change"; !slices.Equal(recorded.all(), []string{"test.example.com/v1 Garden default/terminal true " + want}) {
			t.Errorf("after two minutes: %q", recorded.all())
		}
		time.Sleep(10 * time.Minute)
		stats := <-observer
		if d := stats().LongestRunning; d < 11*time.Minute || d > 12*time.Minute {
			t.Errorf("the longest reconcile has been running for %s", d)
		}
		// Regression: an object that does not fit its Go type had no event. The log had one line.
		gardens, err := kube.TypeOf[Garden]()
		if err != nil {
			t.Fatal(err)
		}
		_, err = kube.Dynamic(client, gardens.Resource, "default").Patch(t.Context(), "brief",
			kube.MergePatch(map[string]any{"spec": map[string]any{"size": "large"}}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cancel()
		running.Wait()
		caches.Close()
		text := strings.Join(recorded.all(), "\n")
		for _, want := range []string{
			"Garden default/lasting true ReconcileFailed Reconcile: the well is dry",
			"Garden default/hanging true ReconcileHangs Reconcile: the reconcile has not returned for minutes",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no event has %q:\n%s", want, text)
			}
		}
		if n := strings.Count(text, "Garden default/brief true ReconcileFailed Reconcile: "); n != 1 || !strings.Contains(text, "size") {
			t.Errorf("%d events about an object that does not fit its type, and that failed for a moment before, want 1:\n%s", n, text)
		}
	})
}

// statsObserver keeps the function that returns the stats of a controller.
type statsObserver chan func() controller.QueueStats

func (o statsObserver) Subscribed(_ string, stats func() controller.QueueStats) { o <- stats }
func (statsObserver) Result(controller.Result)                                  {}
