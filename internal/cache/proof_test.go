package cache

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/bound"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// A list of Client.Live in pages. Between two pages the program deletes an object. The second page has the
// version of the first one. It passes for a version after the deletion, and the store, which has not seen the
// deletion, answers again.
func TestProofSecondPageOfALiveListIsOlderThanWhatWasWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		for _, name := range []string{"a", "b", "c"} {
			if _, err := f.do(f.server, kube.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		page := func(next string) string {
			r := webApps.Request(kube.VerbList, "limit", "1", "continue", next)
			r.Live = true
			response, err := f.handler.Do(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Metadata metav1.ListMeta `json:"metadata"`
			}
			if err := kube.Unmarshal(response.Body, &list); err != nil {
				t.Fatal(err)
			}
			return list.Metadata.Continue
		}
		next := page("")
		f.stream.Freeze()
		if _, err := f.do(f.handler, kube.VerbDelete, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.do(f.handler, kube.VerbGet, "a"); !kube.IsNotFound(err) {
			t.Errorf("after the deletion: %v", err)
		}
		page(next)
		if _, err := f.do(f.handler, kube.VerbGet, "a"); !kube.IsNotFound(err) {
			t.Errorf("after the second page the deleted object is read again: %v", err)
		}
	})
}

// The same with a collection that was deleted.
func TestProofSecondPageOfALiveListSettlesADeletedCollection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		for _, name := range []string{"a", "b", "c"} {
			if _, err := f.do(f.server, kube.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		page := func(next string) string {
			r := webApps.Request(kube.VerbList, "limit", "1", "continue", next)
			r.Live = true
			response, err := f.handler.Do(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			var list struct {
				Metadata metav1.ListMeta `json:"metadata"`
			}
			if err := kube.Unmarshal(response.Body, &list); err != nil {
				t.Fatal(err)
			}
			return list.Metadata.Continue
		}
		next := page("")
		f.stream.Freeze()
		all := &kube.Request{Verb: kube.VerbDeleteCollection, Resource: webApps.Resource, Namespace: "ns"}
		if _, err := f.handler.Do(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		page(next)
		if _, err := f.do(f.handler, kube.VerbGet, "a"); !kube.IsNotFound(err) {
			t.Errorf("after the second page an object of the deleted collection is read: %v", err)
		}
	})
}

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

// A kind that need not be served is removed, shortly after the program has written an object of the kind. The
// watch has not shown the object. The removal is no restoration of a backup.
func TestProofRemovedKindIsNoRestoration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeserver.New()
		var absent atomic.Bool
		h := kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
			switch {
			case r.Resource.Plural == "": // discovery
				if r.Resource.Version == "" {
					return &kube.Response{Code: http.StatusOK, Body: []byte(`{"kind":"APIGroupList","groups":[]}`)}, nil
				}
				if absent.Load() {
					return nil, &kube.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound}
				}
				body, err := kube.Marshal(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, APIResources: []metav1.APIResource{{Name: webApps.Resource.Plural, Kind: "WebApp", Namespaced: true}}})
				return &kube.Response{Code: http.StatusOK, Body: body}, err
			case absent.Load() && r.Resource.Plural == webApps.Resource.Plural:
				return nil, &kube.Error{Verb: r.Verb, Ref: r.Ref(), Code: http.StatusNotFound}
			}
			return server.Do(ctx, r)
		})
		var errs []string
		c := New(h, OnError(func(_ kube.Stream, err error) { errs = append(errs, err.Error()) }))
		t.Cleanup(c.Close)
		id := webApps
		id.IfServed = true
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		open(t, t.Context(), c, id, func(Change) {})
		var restored, lists atomic.Int32
		open(t, t.Context(), c, other, func(ch Change) {
			if ch.Type == Restored {
				restored.Add(1)
			}
		})
		synctest.Wait()
		stream := server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural})
		stream.Freeze()
		f := &follower{T: t, server: server, cache: c, handler: c.Handler(h)}
		if _, err := f.do(f.handler, kube.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		server.Advance(10)
		server.Stream(fakeserver.StreamID{Plural: "others"}).Bookmark()
		synctest.Wait()
		server.ForgetRequests()
		absent.Store(true)
		stream.Cut()
		time.Sleep(2 * time.Minute)
		for _, e := range server.Requests() {
			if e.Request.Resource.Plural == "others" && e.Request.Query.Get("resourceVersion") == "" {
				lists.Add(1)
			}
		}
		if restored.Load() > 0 || lists.Load() > 0 {
			t.Errorf("%d restorations were published, and another kind was listed %d times, because a kind was removed; errors: %s", restored.Load(), lists.Load(), strings.Join(errs, "\n"))
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

// The doubts about objects that nobody reads again stay for ever in a program without writes, such as a standby:
// only writes sweep.
func TestProofDoubtsStayWithoutWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.server.Bookmarks(time.Minute)
		f.stream.Cut() // the next watch has bookmarks
		synctest.Wait()
		const n = 1000
		for i := range n {
			f.cache.Doubt(kube.Ref{Resource: webApps.Resource, Namespace: "ns", Name: "gone-" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + time.Duration(i).String()})
		}
		time.Sleep(24 * time.Hour)
		if left := f.cache.overlay.Len(); left > 100 {
			t.Errorf("a day later the overlay has %d entries of %d objects that do not exist", left, n)
		}
	})
}

// A stream of a kind that is never listed, for want of a permission, keeps the answers to all writes of the kind
// in memory, with their contents, although another stream of the kind shows them.
func TestProofWritesStayWhileAStreamIsNotSynced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.server.Bookmarks(time.Minute)
		selecting := webApps
		selecting.LabelSelector = "a=b"
		f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"}).Refuse(http.StatusForbidden, "")
		open(t, t.Context(), f.cache, selecting, func(Change) {})
		const n = 1000
		for i := range n {
			name := "o-" + time.Duration(i).String()
			if _, err := f.do(f.handler, kube.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if _, err := f.do(f.server, kube.VerbDelete, name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if _, err := f.do(f.handler, kube.VerbPatch, "last"); err != nil { // a write sweeps
			t.Fatal(err)
		}
		if left := f.cache.overlay.Len(); left > 100 {
			t.Errorf("an hour later the overlay has %d entries of %d objects that are gone", left, n)
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
