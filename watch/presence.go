package watch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube"
)

// presencePeriod is the least time between two checks whether the server serves a resource that it
// did not serve before. Up to a half is added at random.
const presencePeriod = 30 * time.Second

// presence finds out by discovery whether a server serves the resource of a stream.
type presence struct {
	handler kube.Handler
	stream  kube.Stream
}

// wait returns nil once the server serves the resource. It passes errors of the discovery to report, and
// returns an error of report.
func (p presence) wait(ctx context.Context, report func(error) error) error {
	for {
		if err := clock.SleepReal(ctx, presencePeriod+rand.N(presencePeriod/2)); err != nil {
			return err
		}
		isServed, failed := p.isServed(ctx)
		switch {
		case failed != nil && ctx.Err() == nil:
			if err := report(failed); err != nil {
				return err
			}
		case isServed:
			return nil
		}
	}
}

// isServed reports whether the server serves the resource of the stream.
func (p presence) isServed(ctx context.Context) (bool, error) {
	r := p.stream.Resource
	resources, err := kube.Discover(ctx, inCluster{p.handler, p.stream.Cluster}, r.GroupVersion())
	return slices.ContainsFunc(resources, func(s kube.Resource) bool { return s.Plural == r.Plural }), err
}

// inCluster passes requests to a cluster.
type inCluster struct {
	handler kube.Handler
	cluster string
}

func (h inCluster) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	other := *r
	other.Cluster = h.cluster
	return h.handler.Do(ctx, &other)
}
