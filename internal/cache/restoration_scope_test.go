package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: a backup was restored. One stream found that out when the server had already passed the version of
// another stream. That stream was not listed, and showed what the restoration had undone for good, although the program
// knew of the restoration.
func TestRestorationListsAStoreThatTheServerHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		var restored atomic.Int32
		open(t, t.Context(), f.cache, other, func(c Change) {
			if c.Type == DoubtSettled {
				restored.Add(1)
			}
		})
		synctest.Wait()
		at := func(name string) *wire.Request {
			return &wire.Request{
				Verb: wire.VerbPatch, Resource: other.Resource, Namespace: "ns", Name: name, ContentType: wire.ContentApply,
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
		get.Verb, get.Query, get.Body = wire.VerbGet, nil, nil
		if response, err := f.handler.Do(t.Context(), get); !kube.IsNotFound(err) {
			t.Errorf("ten minutes after the restoration was published, a read returns what it has undone: %v, cached %v", err, response != nil && response.Cached)
		}
	})
}

// Regression: an answer proved a restoration. The restored server had already passed all versions that the program had
// seen. The stream of the answer was listed, and the restoration was published to everybody. The streams of other kinds
// were not listed, and showed what the restoration had undone for good.
func TestContradictionListsTheStreamsOfOtherKinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		var restored atomic.Int32
		open(t, t.Context(), f.cache, other, func(c Change) {
			if c.Type == DoubtSettled {
				restored.Add(1)
			}
		})
		if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		at := func(name string) *wire.Request {
			return &wire.Request{
				Verb: wire.VerbPatch, Resource: other.Resource, Namespace: "ns", Name: name, ContentType: wire.ContentApply,
				Query: map[string][]string{"fieldManager": {"test"}, "force": {"true"}}, Body: []byte(`{"metadata":{"name":"` + name + `"},"spec":{"size":1}}`),
			}
		}
		backup := f.server.Snapshot()
		relabel(t, f, `"lost":"yes"`)
		if _, err := f.server.Do(t.Context(), at("lost")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.server.Restore(backup)
		f.server.Advance(1000)
		time.Sleep(2 * time.Second)
		if _, err := f.do(f.server, wire.VerbPatch, "new"); err != nil { // new events end the probes
			t.Fatal(err)
		}
		if _, err := f.server.Do(t.Context(), at("new")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := f.do(f.handler, wire.VerbPatch, "a"); err != nil { // an apply that changes nothing any more
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if restored.Load() == 0 {
			t.Fatal("the restoration was not found")
		}
		get := at("lost")
		get.Verb, get.Query, get.Body = wire.VerbGet, nil, nil
		if response, err := f.handler.Do(t.Context(), get); !kube.IsNotFound(err) {
			t.Errorf("ten minutes after the restoration was published, a read of another kind returns what it has undone: %v, cached %v", err, response != nil && response.Cached)
		}
	})
}

// Regression: two servers are behind one address, as the API server and an aggregated API server with resource
// versions of its own. The aggregated one began anew. Everything of the other one was listed again, and a restored
// backup was published to all controllers. A probe of each stream is all that is needed.
func TestAggregatedServerThatBeginsAnewIsNoRestorationOfTheCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, aggregated := fakeserver.New(), fakeserver.New()
		h := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
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
			if ch.Type == DoubtSettled {
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
		lists, probes := 0, 0
		for _, e := range core.Requests() {
			switch {
			case e.Request.Query.Get("limit") == "1":
				probes++
			case e.Request.Query.Get("resourceVersion") == "":
				lists++
			}
		}
		if probes > 1 {
			t.Errorf("the stream of the core API was probed %d times", probes)
		}
		if restored.Load() > 0 || lists > 0 {
			t.Errorf("the core API was listed %d times and %d restorations were published, because an aggregated server has begun anew", lists, restored.Load())
		}
	})
}

// An etcd is restored, and somebody who writes another kind passes the former versions within two seconds. The stream
// shows none of these writes, and gets to the state of the server.
func TestRestoredServerThatPassesTheFormerVersionsAtOnce(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *follower){
		"a change": func(t *testing.T, f *follower) { relabel(t, f, `"lost":"yes"`) },
		"a new object": func(t *testing.T, f *follower) {
			if _, err := f.do(f.server, wire.VerbPatch, "b"); err != nil {
				t.Fatal(err)
			}
		},
		"a deletion": func(_ *testing.T, f *follower) { f.server.Remove(webApps.Resource.Plural, "ns", "a", nil) },
		"an own write": func(t *testing.T, f *follower) {
			if _, err := f.do(f.handler, wire.VerbPatch, "b"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollower(t)
				if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				backup := f.server.Snapshot()
				lose(t, f)
				synctest.Wait()
				f.server.Restore(backup)
				for range 20 {
					f.server.Advance(100)
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(2 * time.Minute)
				f.checkRestored(t)
			})
		})
	}
}

// An etcd is restored as its administrators are advised to: with --bump-revision and --mark-compacted. The versions go up,
// and former versions have expired. Each stream lists once, and nothing counts as a loss.
func TestRestoredServerWithHigherVersions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.server.RefuseExpiredWatches()
		if _, err := f.do(f.handler, wire.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		relabel(t, f, `"lost":"yes"`)
		if _, err := f.do(f.handler, wire.VerbPatch, "b"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.server.ForgetRequests()
		f.server.Restore(backup)
		f.server.Advance(1_000_000_000)
		f.server.Compact()
		time.Sleep(time.Hour)
		f.checkRestored(t)
		if n := countLists(f.server, webApps.Resource.Plural); n != 1 {
			t.Errorf("%d lists in an hour, want 1", n)
		}
	})
}

// Two resources of one API server are stored in two etcds (--etcd-servers-overrides). The versions of one of them are far
// behind those of the other. Nothing follows from that: nothing is listed again, and no read asks the server.
func TestTwoResourcesInTwoEtcds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		main, events := fakeserver.New(), fakeserver.New()
		main.Advance(10_000)
		main.Bookmarks(time.Minute)
		events.Bookmarks(time.Minute)
		other := webApps
		other.Resource.Group, other.Resource.Plural, other.Resource.Kind = "", "others", "Other"
		c := New(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Resource.Plural == other.Resource.Plural {
				return events.Do(ctx, r)
			}
			return main.Do(ctx, r)
		}), OnError(func(s wire.Stream, err error) {
			if _, ok := errors.AsType[*RestorationError](err); ok {
				t.Errorf("%s: %v", s, err)
			}
		}))
		t.Cleanup(c.Close)
		c.RecordDefinition(webApps.Resource.Group)
		open(t, t.Context(), c, webApps, func(Change) {})
		open(t, t.Context(), c, other, func(Change) {})
		synctest.Wait()
		main.ForgetRequests()
		events.ForgetRequests()
		h := c.Handler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Resource.Plural == other.Resource.Plural {
				return events.Do(ctx, r)
			}
			return main.Do(ctx, r)
		}))
		for i := range 120 {
			for _, stream := range []wire.Stream{webApps, other} {
				r := &wire.Request{
					Verb: wire.VerbPatch, Resource: stream.Resource, Namespace: "ns", Name: "a", ContentType: wire.ContentApply,
					Query: map[string][]string{"fieldManager": {"test"}, "force": {"true"}},
					Body:  fmt.Appendf(nil, `{"metadata":{"name":"a"},"spec":{"size":%d}}`, i/2),
				}
				if _, err := h.Do(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				get := &wire.Request{Verb: wire.VerbGet, Resource: stream.Resource, Namespace: "ns", Name: "a"}
				response, err := h.Do(t.Context(), get)
				if err != nil || !response.Cached {
					t.Errorf("round %d: a read of %s: %v, from the cache: %t", i, stream.Resource.Plural, err, err == nil && response.Cached)
				}
			}
			if i%10 == 9 {
				main.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural}).Cut()
				events.Stream(fakeserver.StreamID{Plural: other.Resource.Plural}).Cut()
			}
			time.Sleep(30 * time.Second)
		}
		if n := countLists(main, webApps.Resource.Plural) + countLists(events, other.Resource.Plural); n > 0 {
			t.Errorf("%d lists in an hour, want none", n)
		}
	})
}

// checkRestored compares the store and a read of each object with the server.
func (f *follower) checkRestored(t *testing.T) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		want, wantErr := f.do(f.server, wire.VerbGet, name)
		got, err := f.do(f.handler, wire.VerbGet, name)
		if kube.IsNotFound(wantErr) != kube.IsNotFound(err) || err == nil && !got.Cached {
			t.Errorf("a read of %s: %v, want %v from the cache", name, err, wantErr)
		}
		if err == nil && wantErr == nil && !bytes.Equal(got.Body, want.Body) {
			t.Errorf("a read of %s returns %s, and the server has %s", name, got.Body, want.Body)
		}
	}
}

// countLists returns how often a resource was listed since the last ForgetRequests.
func countLists(s *fakeserver.Server, plural string) (n int) {
	for _, e := range s.Requests() {
		if e.Request.Resource.Plural == plural && e.Request.Query.Get("sendInitialEvents") == "true" {
			n++
		}
	}
	return n
}

// A server that contradicts itself for good: one of two servers behind an address lags for ever. The stream is listed at
// growing intervals, each list is reported, and only the first one is published to the subscribers of other streams.
// Regression: it was listed each minute without a log line, and all controllers reconciled everything each time.
func TestServerThatContradictsItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		response, err := f.do(f.server, wire.VerbGet, "a")
		if err != nil {
			t.Fatal(err)
		}
		former := response.Body
		relabel(t, f, `"n":"1"`)
		synctest.Wait()
		var restored, reported atomic.Int32
		c := New(f.server, OnError(func(_ wire.Stream, err error) {
			if _, ok := errors.AsType[*RestorationError](err); ok {
				reported.Add(1)
			}
		}))
		t.Cleanup(c.Close)
		open(t, t.Context(), c, webApps, func(Change) {})
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		open(t, t.Context(), c, other, func(ch Change) {
			if ch.Type == DoubtSettled {
				restored.Add(1)
			}
		})
		synctest.Wait()
		lagging := c.Handler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Verb == wire.VerbPatch {
				return &wire.Response{Code: http.StatusOK, Body: former}, nil // an apply that changes nothing
			}
			return f.server.Do(ctx, r)
		}))
		f.server.ForgetRequests()
		for range 3 * 60 * 6 {
			if _, err := f.do(lagging, wire.VerbPatch, "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		lists := countLists(f.server, webApps.Resource.Plural)
		// At 0, 1, 3, 7, 15, 31, 63 and 123 minutes.
		if lists != 8 || reported.Load() != 8 || restored.Load() != 2 {
			t.Errorf("in three hours: %d lists, %d reports, and %d restorations published to another stream, want 8, 8 and one for each of two streams",
				lists, reported.Load(), restored.Load())
		}
	})
}

// relabel sends a change of the labels of the object a, as somebody else.
func relabel(t *testing.T, f *follower, labels string) {
	t.Helper()
	_, err := f.server.Do(t.Context(), &wire.Request{
		Verb: wire.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
		ContentType: wire.ContentMergePatch, Body: []byte(`{"metadata":{"labels":{` + labels + `}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
}
