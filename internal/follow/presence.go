package follow

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube/wire"
)

// presencePeriod is the least time between two checks whether the server serves a resource that it
// did not serve before. Up to a half is added at random.
const presencePeriod = 30 * time.Second

// presence finds out by discovery whether a server serves the resource of a stream.
type presence struct {
	handler wire.Handler
	stream  wire.Stream
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
	inCluster := wire.HandlerFunc(func(ctx context.Context, request *wire.Request) (*wire.Response, error) {
		other := *request
		other.Cluster = p.stream.Cluster
		return p.handler.Do(ctx, &other)
	})
	resources, err := wire.Discover(ctx, inCluster, r.GroupVersion())
	return slices.ContainsFunc(resources, func(s wire.Resource) bool { return s.Plural == r.Plural }), err
}
