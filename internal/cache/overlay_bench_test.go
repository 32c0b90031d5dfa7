package cache

import (
	"context"
	"net/url"
	"testing"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube/wire"
)

// benchClient returns a client over a store that is synced and does not change. A request that
// reaches the server fails the benchmark.
func benchClient(b *testing.B, s *followedStream) (*Cache, wire.Handler) {
	b.Helper()
	c := &Cache{s.shared}
	c.streams.open = []*followedStream{s}
	return c, c.Handler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		b.Fatalf("a request was made: %s %s", r.Verb, r.Ref())
		return nil, nil
	}))
}

// BenchmarkCachedGet measures a read by name through the handler.
func BenchmarkCachedGet(b *testing.B) {
	s := filled(webApps, samples.Random.WebApp, 2000)
	_, client := benchClient(b, s)
	var requests []*wire.Request
	for o := range s.store.All(Filter{}) {
		requests = append(requests, &wire.Request{Verb: wire.VerbGet, Resource: webApps.Resource, Namespace: o.Namespace, Name: o.Name})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := client.Do(b.Context(), requests[i%len(requests)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCachedList measures a list that selects about 60 of 1,000 objects, through the
// handler.
func BenchmarkCachedList(b *testing.B) {
	_, client := benchClient(b, filled(webApps, samples.Random.WebApp, 1000))
	r := &wire.Request{Verb: wire.VerbList, Resource: webApps.Resource, Query: url.Values{"labelSelector": {"team=search,tier=front"}, "limit": {"500"}}}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		response, err := client.Do(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		n = 0
		for _, err := range response.Items {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n), "objects")
}
