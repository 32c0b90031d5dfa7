package conversion

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/conversion/internal/crdpublishing"
	"github.com/yare-go/yare/operator/conversion/internal/objectcounts"
	"github.com/yare-go/yare/operator/internal/calls"
)

// kindCount counts the objects of one kind.
type kindCount struct {
	definition string
	// versions are the versions that the program serves, and counters are their counters.
	versions []convert.Version
	counters []*objectcounts.Counter
}

// objectCount returns the number of the objects of the kind. It reports false while the number is not known.
func (k *kindCount) objectCount() (int, bool) {
	for _, counter := range k.counters {
		if n, isKnown := counter.Counts(); isKnown {
			return n.All, true
		}
	}
	return 0, false
}

const (
	// startPollTime is the time between two checks of whether the counting can begin.
	startPollTime = time.Second
	// maxPublicationWait is how long the counting waits for the publication of the conversions.
	maxPublicationWait = time.Minute
)

// objectCounter counts the objects of the kinds of a handler.
type objectCounter struct {
	*handler
	service *calls.Service
}

// countObjects counts the objects of the kinds for the metrics, while the replica leads and ctx has not ended. It
// subscribes to the streams that the cache has anyway, and watches the metadata of each other version that is served.
func (c objectCounter) countObjects(ctx context.Context) {
	if elected := c.service.Host.Runtime.Elected; elected != nil {
		select {
		case <-elected:
		case <-ctx.Done():
		}
	}
	for !c.service.Host.AreSubscribed() {
		if clock.SleepReal(ctx, startPollTime) != nil {
			return
		}
	}
	if waitForConversions(ctx, c.published) != nil {
		return
	}
	cached := c.service.Host.Runtime.Cache.Stats()
	var kinds []*kindCount
	var running sync.WaitGroup
	defer running.Wait()
	for _, k := range c.kinds {
		count := &kindCount{definition: definitionName(k)}
		kinds = append(kinds, count)
		for _, v := range k.Versions() {
			if !v.Served {
				continue
			}
			counter := &objectcounts.Counter{}
			count.versions, count.counters = append(count.versions, v), append(count.counters, counter)
			for _, stream := range streamsOf(v.Resource, c.service.Program.Watched) {
				counter.AddStream()
				running.Go(func() { countStream(ctx, c.service, counter, stream, cached) })
			}
		}
	}
	registerObjectCounts(c.service.Metrics, kinds, c.published)
}

// waitForConversions waits until API servers convert the objects. It returns the error of ctx. An API server that has
// not seen the conversion of a CustomResourceDefinition yet sends the objects of all versions as they are stored. The
// conversion changes no resourceVersion, so a watch that has shown an object before does not show the converted object.
func waitForConversions(ctx context.Context, published func() []crdpublishing.Status) error {
	isUnpublished := func(s crdpublishing.Status) bool { return !s.IsPublished }
	for began := time.Now(); slices.ContainsFunc(published(), isUnpublished) && time.Since(began) < maxPublicationWait; {
		if err := clock.SleepReal(ctx, startPollTime); err != nil {
			return err
		}
	}
	if len(published()) == 0 {
		return nil
	}
	return clock.SleepReal(ctx, schemaDelay)
}

// streamsOf returns the streams of all objects of a resource in namespaces. None means all.
func streamsOf(r wire.Resource, namespaces []string) (all []wire.Stream) {
	if r.ClusterScoped || len(namespaces) == 0 {
		return []wire.Stream{{Resource: r}}
	}
	for _, namespace := range namespaces {
		all = append(all, wire.Stream{Resource: r, Namespace: namespace})
	}
	return all
}

// countStream counts the objects of a stream until ctx ends. cached are the streams of the cache. A stream of the cache
// with the same objects serves in any representation.
func countStream(
	ctx context.Context, s *calls.Service, counter *objectcounts.Counter, stream wire.Stream, cached []cache.Stats,
) {
	i := slices.IndexFunc(cached, func(each cache.Stats) bool {
		same := stream
		same.Representation = each.Stream.Representation
		return each.Stream == same
	})
	if i >= 0 {
		_ = counter.Subscribe(ctx, s.Host.Runtime.Cache, cached[i].Stream) // an error is the end of the cache
		return
	}
	problem := ""
	counter.Follow(ctx, s.Client, stream, func(err error) {
		if text := err.Error(); text != problem {
			s.Host.Runtime.Log.Warn("cannot count the objects of a kind with conversions; will try again",
				"stream", stream.String(), "error", err)
			problem = text
		}
	})
}

// registerObjectCounts registers the numbers of the objects of kinds. published returns the states of their
// CustomResourceDefinitions.
func registerObjectCounts(r *metrics.Registry, kinds []*kindCount, published func() []crdpublishing.Status) {
	for _, each := range []struct {
		name, help string
		value      func(objectcounts.Counts) int
	}{
		{"yare_conversion_annotated_objects", "Objects with an annotation that keeps what the version cannot express.",
			func(n objectcounts.Counts) int { return n.Annotated }},
		{"yare_conversion_incomplete_objects", "Objects from which a conversion to the version has left something out.",
			func(n objectcounts.Counts) int { return n.Incomplete }},
	} {
		r.Collect(metrics.KindGauge, each.name, each.help, []string{"definition", "version"}, func(emit metrics.Emit) {
			for _, k := range kinds {
				for i, counter := range k.counters {
					if n, isKnown := counter.Counts(); isKnown {
						emit(float64(each.value(n)), k.definition, k.versions[i].Resource.Version)
					}
				}
			}
		})
	}
	for _, each := range []struct {
		name, help string
		// version returns the version in which all objects should be stored.
		version func(crdpublishing.Status) string
	}{
		{"yare_conversion_unmigrated_objects", "Objects that may be stored in another version than the storage version.",
			func(s crdpublishing.Status) string { return s.StorageVersion }},
		{"yare_conversion_dependent_objects", "Objects that may need a conversion to the preferred version.",
			func(s crdpublishing.Status) string { return s.PreferredVersion }},
	} {
		r.Collect(metrics.KindGauge, each.name, each.help, []string{"definition"}, func(emit metrics.Emit) {
			for _, s := range published() {
				version := each.version(s)
				i := slices.IndexFunc(kinds, func(k *kindCount) bool { return k.definition == s.Name })
				if version == "" || i < 0 {
					continue
				}
				n, isKnown := kinds[i].objectCount()
				if slices.Equal(s.StoredVersions, []string{version}) {
					n, isKnown = 0, true
				}
				if isKnown {
					emit(float64(n), s.Name)
				}
			}
		})
	}
}
