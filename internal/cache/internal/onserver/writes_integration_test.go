// Package onserver tests package cache on a real API server. Its tests are in a package of their
// own, because package cache checks that its tests leave no goroutine behind. A control plane
// shared by all tests lives as long as the process.
package onserver

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/gadget"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

const (
	configMap = `{"metadata":{"labels":{"app":"a"}},"data":{"k":"v","l":"w"}}`
	service   = `{"metadata":{"labels":{"app":"a"}},"spec":{"selector":{"app":"a"},"ports":[{"name":"http","port":80,"targetPort":8080},{"name":"dns","port":53,"protocol":"UDP"}]}}`
)

// gate holds watches back while it is closed.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	g.open = nil
}

func (g *gate) wait(ended <-chan struct{}) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		select {
		case <-open:
		case <-ended:
		}
	}
}

func (g *gate) handler(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		response, err := next.Do(ctx, r)
		if err == nil && response.BodyReader != nil {
			held := *response
			held.BodyReader = &heldStream{ReadCloser: response.BodyReader, gate: g, ended: ctx.Done()}
			response = &held
		}
		return response, err
	})
}

type heldStream struct {
	io.ReadCloser
	gate  *gate
	ended <-chan struct{}
}

func (s *heldStream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.gate.wait(s.ended)
	return n, err
}

// Promise 7: what a real server answers is understood, for each verb, and for kinds whose
// deletion is answered in each of the possible ways. The watch is held back, so that all there
// is to go by is the answer.
func TestReadYourWrites(t *testing.T) {
	t.Parallel()
	configMaps, services := gadget.Resource("", "v1", "ConfigMap", "configmaps"), gadget.Resource("", "v1", "Service", "services")
	pods, gadgets := gadget.Resource("", "v1", "Pod", "pods"), gadget.Gadgets()
	const (
		pod         = `{"metadata":{"labels":{"app":"a"}},"spec":{"schedulerName":"nobody","containers":[{"name":"c","image":"i"}]}}`
		gadgetOfTwo = `{"spec":{"count":2}}`
	)
	type api = kube.API[unstructured.Unstructured]
	create := func(ctx context.Context, a api, o *unstructured.Unstructured) error {
		_, err := a.Create(ctx, o)
		return err
	}
	remove := func(options ...kube.DeleteOption) func(context.Context, api, *unstructured.Unstructured) error {
		return func(ctx context.Context, a api, o *unstructured.Unstructured) error {
			return a.Delete(ctx, o.GetName(), options...)
		}
	}
	patch := func(p kube.Patch) func(context.Context, api, *unstructured.Unstructured) error {
		return func(ctx context.Context, a api, o *unstructured.Unstructured) error {
			_, err := a.Patch(ctx, o.GetName(), p)
			return err
		}
	}
	apply := func(ctx context.Context, a api, o *unstructured.Unstructured) error {
		_, err := a.Apply(ctx, o)
		return err
	}
	scale := func(ctx context.Context, a api, o *unstructured.Unstructured) error {
		_, err := a.SetScale(ctx, o.GetName(), 3)
		return err
	}
	everything := func(ctx context.Context, a api, _ *unstructured.Unstructured) error {
		return a.DeleteAll(ctx, []kube.Selector{kube.Everything()}, kube.GracePeriod(0))
	}
	label := patch(kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"x": "y"}}}))
	final := patch(kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": []string{"test.example.com/f"}}}))
	let := patch(kube.JSONPatch(kube.RemoveAt("/metadata/finalizers")))
	type step struct {
		name string
		do   func(context.Context, api, *unstructured.Unstructured) error
		// requests that the reads after it may take.
		requests int64
	}
	for name, c := range map[string]struct {
		resource wire.Resource
		body     string
		steps    []step
	}{
		"ConfigMap": {configMaps, configMap, []step{
			{"create", create, 0}, {"label", label, 0}, {"apply", apply, 0}, {"apply again", apply, 0}, {"delete", remove(), 0},
			{"create anew", create, 0}, {"finalizer", final, 0}, {"delete, held", remove(), 0}, {"let go", let, 0},
			{"apply anew", apply, 0}, {"try to delete", remove(kube.DryRun()), 0}, {"delete", remove(), 0},
		}},
		"Service": {services, service, []step{{"create", create, 0}, {"delete", remove(), 0}, {"create anew", create, 0}}},
		"Pod": {pods, pod, []step{
			{"create", create, 0}, {"delete at once", remove(kube.GracePeriod(0)), 0}, {"create anew", create, 0}, {"label", label, 0},
			{"finalizer", final, 0}, {"delete, held", remove(kube.GracePeriod(0)), 0}, {"let go", let, 0},
		}},
		"collection": {configMaps, configMap, []step{{"create", create, 0}, {"delete all", everything, 4}}},
		// Gadgets with a scale have no controller that writes to them.
		"scale": {gadgets, gadgetOfTwo, []step{{"create", create, 0}, {"scale", scale, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := yaretest.Shared(t)
			if c.resource == gadgets {
				gadget.Define(t, cluster)
			}
			space := cluster.Namespace(t)
			plain := cluster.Client(t).WithFieldManager("us")
			g := &gate{}
			caches := cache.New(g.handler(plain))
			t.Cleanup(caches.Close)
			synced := make(chan struct{})
			if _, err := caches.Open(t.Context(), wire.Stream{Resource: c.resource, Namespace: space}, func(e cache.Change) {
				if e.Type == cache.Synced {
					close(synced)
				}
			}); err != nil {
				t.Fatal(err)
			}
			<-synced
			g.hold()
			var sent atomic.Int64
			cached := plain.With(func(next wire.Handler) wire.Handler {
				return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					sent.Add(1)
					return next.Do(ctx, r)
				})
			}).With(caches.Handler)
			for _, s := range c.steps {
				if err := s.do(t.Context(), kube.Dynamic(cached, c.resource, space), gadget.Object(t, c.resource, space, "a", c.body)); err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
				want := stateOf(t, kube.Dynamic(plain, c.resource, space))
				before := sent.Load()
				if got := stateOf(t, kube.Dynamic(cached, c.resource, space)); got != want {
					t.Errorf("after %q the client shows %q, the server has %q", s.name, got, want)
				}
				if n := sent.Load() - before; n > s.requests {
					t.Errorf("after %q reads made %d requests, want %d", s.name, n, s.requests)
				}
			}
			g.release()
			// How far a stream has got, it learns from a change, or from the bookmark that the
			// server sends once a minute. Until then reads in a collection that was deleted make
			// requests.
			if _, err := kube.Dynamic(plain, c.resource, space).Create(t.Context(), gadget.Object(t, c.resource, space, "other", c.body)); err != nil {
				t.Fatal(err)
			}
			yaretest.Eventually(t, func() error {
				before := sent.Load()
				want, got := stateOf(t, kube.Dynamic(plain, c.resource, space)), stateOf(t, kube.Dynamic(cached, c.resource, space))
				if want != got || sent.Load() > before {
					return fmt.Errorf("at rest the client shows %q after %d requests, the server has %q", got, sent.Load()-before, want)
				}
				return nil
			})
		})
	}
}

// stateOf returns the UID and the version of the object a, if a read by name and a list agree.
func stateOf(t *testing.T, a kube.API[unstructured.Unstructured]) string {
	t.Helper()
	state := ""
	o, err := a.Get(t.Context(), "a")
	switch {
	case err == nil:
		state = string(o.GetUID()) + "@" + o.GetResourceVersion()
	case !kube.IsNotFound(err):
		t.Fatal(err)
	}
	all, err := a.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := ""
	for _, o := range all {
		if o.GetName() == "a" {
			listed = string(o.GetUID()) + "@" + o.GetResourceVersion()
		}
	}
	if listed != state {
		t.Errorf("a read by name shows %q, a list %q", state, listed)
	}
	return state
}
