package controller_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
)

// One round that has nothing to do: a read from the cache, and an apply and a status that
// would change nothing.
func BenchmarkRound(b *testing.B) {
	s := newServer()
	c := s.client()
	if _, err := kube.Everywhere[Garden](c).Create(b.Context(), garden("eden")); err != nil {
		b.Fatal(err)
	}
	caches := cache.New(c)
	defer caches.Close()
	names, ended := make(chan kube.Key), make(chan controller.Result, 1)
	part := controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
		if _, err := kube.Apply(ctx, c, kube.OwnedBy(g, plant("rose"))); err != nil {
			return controller.Done(), err
		}
		g.Status.Size = g.Spec.Size
		return controller.Done(), c.ApplyStatus(ctx, g)
	}, controller.Owns[Plant](), controller.Channel(names),
		controller.OnResult(func(r controller.Result) {
			if strings.Contains(r.Causes, "channel") {
				ended <- r
			}
		}))
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		rt := &controller.Runtime{Client: c, Cache: caches, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		if err := part.Start(ctx, rt); err != nil {
			b.Error(err)
		}
	})
	for atRest := false; !atRest; {
		names <- kube.Key{Namespace: "default", Name: "eden"}
		r := <-ended
		atRest = len(r.Writes) == 2 && r.Writes[0].Skipped && r.Writes[1].Skipped
	}
	b.ReportAllocs()
	for b.Loop() {
		names <- kube.Key{Namespace: "default", Name: "eden"}
		<-ended
	}
}
