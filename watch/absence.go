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

// handleNotFound handles the answer err, which reports that the server does not know the resource of the
// stream. Discovery decides: without a successful discovery the resource is not absent. If it is
// absent, handleNotFound publishes that there are no objects, and returns nil once the server serves
// the resource. Otherwise it returns the error that the follower has to handle.
func (f *follower) handleNotFound(ctx context.Context, err error) error {
	served, failed := f.isServed(ctx)
	switch {
	case failed != nil:
		return failed
	case served:
		return err // discovery and the resource appear and disappear at different moments
	}
	if err := f.publishAbsence(); err != nil {
		return err
	}
	for {
		if err := clock.SleepReal(ctx, presencePeriod+rand.N(presencePeriod/2)); err != nil {
			return err
		}
		served, failed := f.isServed(ctx)
		switch {
		case failed != nil && ctx.Err() == nil:
			if err := f.publishError(failed); err != nil {
				return err
			}
		case served:
			return nil
		}
	}
}

// isServed reports whether the server serves the resource of the stream.
func (f *follower) isServed(ctx context.Context) (bool, error) {
	r := f.stream.Resource
	resources, err := kube.Discover(ctx, inCluster{f.handler, f.stream.Cluster}, r.GroupVersion())
	return slices.ContainsFunc(resources, func(s kube.Resource) bool { return s.Plural == r.Plural }), err
}

// publishAbsence publishes a list without objects, at the version that the stream has reached. The
// version is empty if the stream has not reached any.
func (f *follower) publishAbsence() error {
	f.version = ""
	if err := f.beginList(); err != nil {
		return err
	}
	return f.endList(f.reached)
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
