package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/testkit/bound"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// A backup is restored. One stream finds that out, when the server has already passed the version of another
// stream. That stream is not listed, and shows what the restoration has undone for good, although the program
// knows of the restoration.
func TestProofRestorationLeavesAStoreInThePast(t *testing.T) {
	bound.SkipFinding(t, 5)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		var restored atomic.Int32
		open(t, t.Context(), f.cache, other, func(c Change) {
			if c.Type == Restored {
				restored.Add(1)
			}
		})
		synctest.Wait()
		at := func(name string) *kube.Request {
			return &kube.Request{
				Verb: kube.VerbPatch, Resource: other.Resource, Namespace: "ns", Name: name, ContentType: kube.ContentApply,
				Query: map[string][]string{"fieldManager": {"test"}, "force": {"true"}}, Body: []byte(`{"metadata":{"name":"` + name + `"},"spec":{"size":1}}`),
			}
		}
		backup := f.server.Snapshot()
		if _, err := f.server.Do(t.Context(), at("lost")); err != nil {
			t.Fatal(err)
		}
		f.server.Advance(400)
		f.stream.Bookmark() // the stream of the WebApps is ahead of the stream of the Others
		synctest.Wait()
		f.server.Restore(backup)
		f.server.Advance(300)
		time.Sleep(2 * time.Second) // the watches are open again
		if _, err := f.server.Do(t.Context(), at("new")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if restored.Load() == 0 {
			t.Fatal("the restoration was not found")
		}
		get := at("lost")
		get.Verb, get.Query, get.Body = kube.VerbGet, nil, nil
		if response, err := f.handler.Do(t.Context(), get); !kube.IsNotFound(err) {
			t.Errorf("ten minutes after the restoration was published, a read returns what it has undone: %v, cached %v", err, response != nil && response.Cached)
		}
	})
}

// An answer proves a restoration. The restored server has already passed all versions that the program has seen.
// The stream of the answer is listed, and the restoration is published to everybody. The streams of other kinds
// are not listed, and show what the restoration has undone for good.
func TestProofContradictionListsOnlyItsOwnStream(t *testing.T) {
	bound.SkipFinding(t, 5)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		var restored atomic.Int32
		open(t, t.Context(), f.cache, other, func(c Change) {
			if c.Type == Restored {
				restored.Add(1)
			}
		})
		if _, err := f.do(f.server, kube.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		at := func(name string) *kube.Request {
			return &kube.Request{
				Verb: kube.VerbPatch, Resource: other.Resource, Namespace: "ns", Name: name, ContentType: kube.ContentApply,
				Query: map[string][]string{"fieldManager": {"test"}, "force": {"true"}}, Body: []byte(`{"metadata":{"name":"` + name + `"},"spec":{"size":1}}`),
			}
		}
		backup := f.server.Snapshot()
		label := &kube.Request{
			Verb: kube.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: kube.ContentMergePatch, Body: []byte(`{"metadata":{"labels":{"lost":"yes"}}}`),
		}
		if _, err := f.server.Do(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		if _, err := f.server.Do(t.Context(), at("lost")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.server.Restore(backup)
		f.server.Advance(1000)
		time.Sleep(2 * time.Second)
		if _, err := f.do(f.server, kube.VerbPatch, "new"); err != nil { // new events end the probes
			t.Fatal(err)
		}
		if _, err := f.server.Do(t.Context(), at("new")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := f.do(f.handler, kube.VerbPatch, "a"); err != nil { // an apply that changes nothing any more
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if restored.Load() == 0 {
			t.Fatal("the restoration was not found")
		}
		get := at("lost")
		get.Verb, get.Query, get.Body = kube.VerbGet, nil, nil
		if response, err := f.handler.Do(t.Context(), get); !kube.IsNotFound(err) {
			t.Errorf("ten minutes after the restoration was published, a read of another kind returns what it has undone: %v, cached %v", err, response != nil && response.Cached)
		}
	})
}

// Two servers behind one address, as the API server and an aggregated API server with resource versions of
// its own. The aggregated one begins anew. Everything of the other one is listed again, and a restored backup
// is published to all controllers.
func TestProofAggregatedServerThatBeginsAnewIsNoRestorationOfTheCluster(t *testing.T) {
	bound.SkipFinding(t, 10)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, aggregated := fakeserver.New(), fakeserver.New()
		h := kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
			if r.Resource.Plural == "others" {
				return aggregated.Do(ctx, r)
			}
			return core.Do(ctx, r)
		})
		core.Advance(100_000)
		empty := aggregated.Snapshot()
		aggregated.Advance(5000)
		c := New(h)
		t.Cleanup(c.Close)
		var restored atomic.Int32
		open(t, t.Context(), c, webApps, func(ch Change) {
			if ch.Type == Restored {
				restored.Add(1)
			}
		})
		other := webApps
		other.Resource.Group, other.Resource.Plural, other.Resource.Kind = "aggregated.example.com", "others", "Other"
		open(t, t.Context(), c, other, func(Change) {})
		synctest.Wait()
		core.ForgetRequests()
		aggregated.Restore(empty)
		time.Sleep(2 * time.Minute)
		lists := 0
		for _, e := range core.Requests() {
			if e.Request.Query.Get("resourceVersion") == "" {
				lists++
			}
		}
		if restored.Load() > 0 || lists > 0 {
			t.Errorf("the core API was listed %d times and %d restorations were published, because an aggregated server has begun anew", lists, restored.Load())
		}
	})
}
