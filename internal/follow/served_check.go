package follow

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/kube/wire"
)

// servedCheckPeriod is the least time between two checks whether the server serves a resource that it
// did not serve before. Up to a half is added at random.
const servedCheckPeriod = 30 * time.Second

// servedCheck checks by discovery whether a server serves the resource of a stream.
type servedCheck struct {
	handler wire.Handler
	stream  wire.Stream
}

// wait returns nil once the server serves the resource. It passes errors of the discovery to report, and
// returns an error of report.
func (c servedCheck) wait(ctx context.Context, report func(error) error) error {
	for {
		if err := clock.SleepReal(ctx, servedCheckPeriod+rand.N(servedCheckPeriod/2)); err != nil {
			return err
		}
		isServed, checkErr := c.isServed(ctx)
		switch {
		case checkErr != nil && ctx.Err() == nil:
			if err := report(checkErr); err != nil {
				return err
			}
		case isServed:
			return nil
		}
	}
}

// isServed reports whether the server serves the resource of the stream.
func (c servedCheck) isServed(ctx context.Context) (bool, error) {
	r := c.stream.Resource
	inCluster := wire.HandlerFunc(func(ctx context.Context, request *wire.Request) (*wire.Response, error) {
		other := *request
		other.Cluster = c.stream.Cluster
		return c.handler.Do(ctx, &other)
	})
	resources, err := wire.Discover(ctx, inCluster, r.GroupVersion())
	return slices.ContainsFunc(resources, func(s wire.Resource) bool { return s.Plural == r.Plural }), err
}
