package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

type spanKey struct{}

// tracer records spans as text, with the names of the spans that they are in.
type tracer struct{ journal }

func (r *tracer) Start(ctx context.Context, name string, attributes ...slog.Attr) (context.Context, func(error)) {
	if outer, ok := ctx.Value(spanKey{}).(string); ok {
		name = outer + " > " + name
	}
	for _, a := range attributes {
		if a.Key == "name" {
			name += " " + a.Value.String()
		}
	}
	return context.WithValue(ctx, spanKey{}, name), func(err error) {
		r.record(fmt.Sprintf("%s: %v", name, err))
	}
}

func (r *tracer) Inject(context.Context, http.Header) {}

// Reconciles and cleanups have spans, which end with their errors, panics included. Requests are
// within them.
func TestSpans(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		traced := new(tracer)
		client := s.client().With(wire.Trace(traced))
		part := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
			if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose"))); err != nil {
				return controller.Done(), err
			}
			panic("at the disco")
		}).Finalizer("test.example.com/cleanup", func(context.Context, *Garden, *kube.Client) (controller.Cleanup, error) {
			return controller.CleanupDone(), nil
		})
		create(t, s.client(), garden("eden"))
		start(t, client, tracedPart{part, traced})
		synctest.Wait()
		spans := traced.drain()
		for _, want := range []string{
			"reconcile garden eden > patch gardens.test.example.com eden: <nil>",
			"reconcile garden eden > patch plants.test.example.com rose: <nil>",
			"reconcile garden eden: the reconcile function panicked: at the disco",
		} {
			if !slices.Contains(spans, want) {
				t.Errorf("the spans lack %q: %q", want, spans)
			}
		}
		remove(t, s.client(), garden("eden"))
		synctest.Wait()
		if spans := traced.drain(); !slices.Contains(spans, "cleanup garden eden: <nil>") || strings.Contains(strings.Join(spans, " "), "reconcile") {
			t.Errorf("the spans of the cleanup are %q", spans)
		}
	})
}

// tracedPart runs a part with a tracer.
type tracedPart struct {
	part
	tracer wire.Tracer
}

func (p tracedPart) Start(ctx context.Context, rt *controller.Runtime) error {
	traced := *rt
	traced.Tracer = p.tracer
	return p.part.Start(ctx, &traced)
}
