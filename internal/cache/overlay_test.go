package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 7: each verb, while the watch is held back. What the answer shows costs no
// request, and an unknown state costs one.
func TestReadYourWritesOfEachVerb(t *testing.T) {
	t.Parallel()
	apply := func(name, body string) *wire.Request {
		r := request(wire.VerbPatch, name, body)
		r.ContentType = wire.ContentApply
		return r
	}
	sub := func(r *wire.Request, subresource string) *wire.Request {
		r.Subresource = subresource
		return r
	}
	inBeta := func(r *wire.Request) *wire.Request {
		r.Resource = beta(r.Resource)
		return r
	}
	asMetadata := func(r *wire.Request) *wire.Request {
		r.Representation = wire.MetadataOnly
		return r
	}
	const there, held = `{"metadata":{"name":"a"},"spec":1}`, `{"metadata":{"name":"a","finalizers":["f"]},"spec":1}`
	for name, c := range map[string]struct {
		before   string
		writes   []*wire.Request
		requests int
		setup    func(*recordingServer)
	}{
		"create":             {writes: []*wire.Request{request(wire.VerbCreate, "", there)}},
		"apply that creates": {writes: []*wire.Request{apply("a", there)}},
		"apply":              {before: there, writes: []*wire.Request{apply("a", `{"spec":2}`)}},
		"update":             {before: there, writes: []*wire.Request{request(wire.VerbUpdate, "a", `{"spec":2}`)}},
		"patch":              {before: there, writes: []*wire.Request{request(wire.VerbPatch, "a", `{"spec":2}`)}},
		"spec, then status":  {before: there, writes: []*wire.Request{apply("a", `{"spec":2}`), sub(apply("a", `{"status":3}`), "status")}},
		"no change":          {before: there, writes: []*wire.Request{apply("a", `{"spec":1}`)}},
		"scale":              {before: there, writes: []*wire.Request{sub(request(wire.VerbPatch, "a", `{"spec":2}`), "scale")}, requests: 1},
		"eviction":           {before: there, writes: []*wire.Request{sub(request(wire.VerbCreate, "a", ""), "eviction")}, requests: 1},
		"delete":             {before: there, writes: []*wire.Request{request(wire.VerbDelete, "a", "")}},
		"delete, answered with the object": {
			before: there, writes: []*wire.Request{request(wire.VerbDelete, "a", "")}, setup: func(s *recordingServer) { s.answersDeleteWithObject = true },
		},
		"delete with grace": {
			before: there, writes: []*wire.Request{request(wire.VerbDelete, "a", "")}, setup: func(s *recordingServer) { s.hasGracePeriod = true },
		},
		"delete with a finalizer": {before: held, writes: []*wire.Request{request(wire.VerbDelete, "a", "")}},
		"the last finalizer removed": {before: held, writes: []*wire.Request{
			request(wire.VerbDelete, "a", ""), request(wire.VerbPatch, "a", `{"metadata":{"finalizers":[]}}`),
		}},
		"deleted and made anew": {before: there, writes: []*wire.Request{request(wire.VerbDelete, "a", ""), request(wire.VerbCreate, "", there)}},
		"deleted, made anew and deleted": {before: there, writes: []*wire.Request{
			request(wire.VerbDelete, "a", ""), request(wire.VerbCreate, "", there), request(wire.VerbDelete, "a", ""),
		}},
		// One request for the version that settles it; what it is about is read live until then.
		"delete collection": {before: there, writes: []*wire.Request{request(wire.VerbDeleteCollection, "", "")}, requests: 5},
		"another version":   {before: there, writes: []*wire.Request{inBeta(apply("a", `{"spec":2}`))}, requests: 1},
		"metadata only":     {before: there, writes: []*wire.Request{asMetadata(request(wire.VerbPatch, "a", `{"metadata":{"labels":{"v":"1"}}}`))}, requests: 1},
	} {
		for form, streams := range map[string][]wire.Stream{
			"one stream":     everything,
			"several":        {webApps, {Resource: webApps.Resource, Namespace: "ns"}, {Resource: webApps.Resource, Representation: wire.MetadataOnly}},
			"other versions": {webApps, {Resource: beta(webApps.Resource)}},
		} {
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				withFixture(t, streams, func(b *fixture) {
					if c.setup != nil {
						c.setup(b.server)
					}
					if c.before != "" {
						b.changeByOthers(request(wire.VerbCreate, "", c.before))
						b.catchUp()
						b.checkReads(0)
					}
					for _, w := range c.writes {
						again := *w
						b.must(&again)
					}
					b.checkReads(c.requests)
					b.catchUp()
					b.server.bookmark()
					b.catchUp()
					b.checkReads(1)
					b.checkReads(0)
				})
			})
		}
	}
}

// Promise 7: a write of unknown outcome, and a write refused because of a state that the cache
// does not show, make the next read a live read, and no more.
func TestRefusalsThatContradictTheCache(t *testing.T) {
	t.Parallel()
	const there = `{"metadata":{"name":"a"},"spec":1}`
	conditional := func(r *wire.Request, p wire.Preconditions) *wire.Request {
		r.Preconditions = p
		r.Body = fmt.Appendf(nil, `{"metadata":{"name":"a","uid":%q,"resourceVersion":%q},"spec":7}`, p.UID, p.ResourceVersion)
		return r
	}
	t.Run("AlreadyExists", func(t *testing.T) {
		t.Parallel()
		withFixture(t, everything, func(b *fixture) {
			b.changeByOthers(request(wire.VerbCreate, "", there))
			if _, err := b.do(request(wire.VerbCreate, "", there)); !kube.IsAlreadyExists(err) {
				b.Fatal(err)
			}
			b.checkReads(1)
			b.catchUp()
			if _, err := b.do(request(wire.VerbCreate, "", there)); !kube.IsAlreadyExists(err) {
				b.Fatal(err)
			}
			b.checkReads(0) // that it is there is known
		})
	})
	t.Run("NotFound", func(t *testing.T) {
		t.Parallel()
		withFixture(t, everything, func(b *fixture) {
			b.changeByOthers(request(wire.VerbCreate, "", there))
			b.catchUp()
			b.changeByOthers(request(wire.VerbDelete, "a", ""))
			if _, err := b.do(request(wire.VerbPatch, "a", `{"spec":3}`)); !kube.IsNotFound(err) {
				b.Fatal(err)
			}
			b.checkReads(1)
		})
	})
	for name, subresource := range map[string]string{"Conflict": "", "Conflict of a status": "status"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withFixture(t, everything, func(b *fixture) {
				b.changeByOthers(request(wire.VerbCreate, "", there))
				b.catchUp()
				old := *b.server.objects[kube.Key{Namespace: "ns", Name: "a"}]
				b.changeByOthers(request(wire.VerbPatch, "a", `{"spec":3}`))
				r := conditional(request(wire.VerbUpdate, "a", ""), wire.Preconditions{UID: old.Metadata.UID, ResourceVersion: old.Metadata.Version})
				r.Subresource = subresource
				if _, err := b.do(r); !kube.IsConflict(err) {
					b.Fatal(err)
				}
				b.checkReads(1)
				b.catchUp()
				if _, err := b.do(r); !kube.IsConflict(err) {
					b.Fatal(err)
				}
				b.checkReads(0) // that there is a newer one is known
			})
		})
	}
	t.Run("Invalid, of an apply to an object made anew", func(t *testing.T) {
		t.Parallel()
		withFixture(t, everything, func(b *fixture) {
			b.changeByOthers(request(wire.VerbCreate, "", there))
			b.catchUp()
			old := *b.server.objects[kube.Key{Namespace: "ns", Name: "a"}]
			b.changeByOthers(request(wire.VerbDelete, "a", ""))
			b.changeByOthers(request(wire.VerbCreate, "", there))
			r := conditional(request(wire.VerbPatch, "a", ""), wire.Preconditions{UID: old.Metadata.UID})
			r.ContentType = wire.ContentApply
			next := b.client
			b.client = b.caches.Handler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
				return nil, &wire.Error{Code: http.StatusUnprocessableEntity, Answer: metav1.Status{
					Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Name: "a", Causes: []metav1.StatusCause{{Field: "metadata.uid"}}},
				}}
			}))
			if _, err := b.do(r); !kube.IsInvalid(err) {
				b.Fatal(err)
			}
			b.client = next
			b.checkReads(1)
		})
	})
	for name, write := range map[string]*wire.Request{
		"a patch":                  request(wire.VerbPatch, "a", `{"spec":5}`),
		"a delete":                 request(wire.VerbDelete, "a", ""),
		"a create with a name":     request(wire.VerbCreate, "", `{"metadata":{"name":"b"}}`),
		"a create without a name":  request(wire.VerbCreate, "", `{"metadata":{"generateName":"g"}}`),
		"a deletion of collection": request(wire.VerbDeleteCollection, "", ""),
	} {
		for _, carried := range []bool{true, false} {
			t.Run(fmt.Sprintf("unknown outcome of %s, carried out: %t", name, carried), func(t *testing.T) {
				t.Parallel()
				withFixture(t, everything, func(b *fixture) {
					b.changeByOthers(request(wire.VerbCreate, "", there))
					b.catchUp()
					lossy := b.caches.Handler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
						if carried {
							_, _, _ = b.server.serve(r)
						}
						return nil, &wire.Error{Unknown: true, Err: http.ErrHandlerTimeout}
					}))
					write := *write
					if _, err := lossy.Do(b.Context(), &write); !kube.IsUnknown(err) {
						b.Fatal(err)
					}
					b.checkReads(5)
					run := &overlayRun{t: b.T}
					if got := run.items(b.must(request(wire.VerbList, "", ""))); len(got) != len(b.server.objects) {
						b.Errorf("a list shows %v, the server has %d", got, len(b.server.objects))
					}
					b.catchUp()
					b.server.bookmark()
					b.catchUp()
					b.checkReads(0)
				})
			})
		}
	}
}

// Promise 7: a delete that is only tried deletes nothing. Its body has the option.
func TestDryRunsAreNotWrites(t *testing.T) {
	t.Parallel()
	withFixture(t, everything, func(b *fixture) {
		b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"a"}}`))
		b.catchUp()
		pretend := b.caches.Handler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
			return &wire.Response{Code: 200, Body: fmt.Appendf(nil, `{"kind":"Status","details":{"uid":%q}}`, b.server.objects[kube.Key{Namespace: "ns", Name: "a"}].Metadata.UID)}, nil
		}))
		for _, r := range []*wire.Request{
			request(wire.VerbDelete, "a", `{"dryRun":["All"]}`), request(wire.VerbDeleteCollection, "", `{"dryRun":["All"]}`),
			{Verb: wire.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a", Query: url.Values{"dryRun": {"All"}}},
		} {
			if _, err := pretend.Do(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		b.checkReads(0)
	})
}

// Promise 7: a server that was restored from a backup has lower versions than the written
// versions. After a minute this is found out.
func TestRestoredServer(t *testing.T) {
	t.Parallel()
	withFixture(t, everything, func(b *fixture) {
		k := kube.Key{Namespace: "ns", Name: "a"}
		b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"a"},"spec":1}`))
		b.catchUp()
		backup := *b.server.objects[k]
		for i := range 50 {
			b.must(request(wire.VerbPatch, "a", fmt.Sprintf(`{"spec":%d}`, i+10)))
		}
		b.must(request(wire.VerbDelete, "a", ""))
		b.server.mu.Lock()
		b.server.version, b.server.log = 110, nil
		b.server.objects[k] = &backup
		b.server.compacted = 110
		b.server.mu.Unlock()
		b.server.cut(false, func() bool { return true })
		for range 10 {
			time.Sleep(20 * time.Second)
			b.catchUp()
		}
		b.checkReads(1)
		b.must(request(wire.VerbPatch, "a", `{"spec":7}`))
		b.checkReads(0)
	})
}

// Promise 7: what a stream that is not synced yet will show may be older than a write.
func TestStreamThatIsNotSynced(t *testing.T) {
	t.Parallel()
	withFixture(t, nil, func(b *fixture) {
		b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"a"},"spec":1}`))
		if _, err := b.caches.Open(b.Context(), webApps, func(Change) {}); err != nil {
			b.Fatal(err)
		}
		synctest.Wait() // the list is made, and on its way
		b.must(request(wire.VerbPatch, "a", `{"spec":2}`))
		b.server.deliver(2, func() bool { return true })
		synctest.Wait()
		if b.caches.View().coveringStore("", webApps.Resource, "ns", wire.Full, anyStore) == nil {
			b.Fatal("it is not synced")
		}
		b.checkReads(0)
	})
}

// Promise 7, and the memory it takes: what all streams have seen is not kept, and what no
// stream covers never was.
func TestOverlayIsEmptyAtRest(t *testing.T) {
	t.Parallel()
	withFixture(t, []wire.Stream{webApps, {Resource: webApps.Resource, Namespace: "ns"}}, func(b *fixture) {
		for i := range 500 {
			name := fmt.Sprint("o", i)
			b.must(request(wire.VerbCreate, "", fmt.Sprintf(`{"metadata":{"name":%q}}`, name)))
			b.must(request(wire.VerbPatch, name, `{"spec":2}`))
			if i%2 == 0 {
				b.must(request(wire.VerbDelete, name, ""))
			}
		}
		if n := b.caches.overlay.Len(); n != 500 {
			b.Errorf("%d entries, want 500", n)
		}
		b.catchUp()
		if n := b.caches.overlay.Len(); n != 0 {
			b.Errorf("%d entries are left", n)
		}
		other := request(wire.VerbCreate, "", `{"metadata":{"name":"x"}}`)
		other.Resource.Plural = "others"
		b.must(other)
		if n := b.caches.overlay.Len(); n != 0 {
			b.Errorf("%d entries of what nobody follows", n)
		}
	})
}

// Seam 9: of a Secret that was written, the overlay keeps no content.
func TestSecretsAreNotKeptByTheOverlay(t *testing.T) {
	t.Parallel()
	metadata := secrets
	metadata.Representation = wire.MetadataOnly
	withFixture(t, []wire.Stream{metadata}, func(b *fixture) {
		r := request(wire.VerbCreate, "", `{"metadata":{"name":"a"},"spec":424242}`)
		r.Resource = secrets.Resource
		b.must(r)
		for _, k := range b.caches.overlayKeys() {
			if e, _ := b.caches.overlay.Get(k); strings.Contains(string(e.Object), "424242") {
				b.Errorf("kept: %s", e.Object)
			}
		}
		before := b.server.requests
		read := &wire.Request{Verb: wire.VerbGet, Resource: secrets.Resource, Namespace: "ns", Name: "a", Representation: wire.MetadataOnly}
		b.must(read)
		if b.server.requests != before {
			b.Error("its metadata were read from the server")
		}
		read.Representation = wire.Full
		if response := b.must(read); !strings.Contains(string(response.Body), "424242") || response.Cached {
			b.Errorf("read: %s", response.Body)
		}
	})
}

// Regression: what a write was answered with was kept in full although only the metadata of its
// kind were followed, so that no read was ever answered with it.
func TestContentThatNoStoreServesIsNotKept(t *testing.T) {
	t.Parallel()
	metadata := webApps
	metadata.Representation = wire.MetadataOnly
	withFixture(t, []wire.Stream{metadata}, func(b *fixture) {
		b.must(request(wire.VerbCreate, "", `{"metadata":{"name":"a"},"spec":424242}`))
		for _, k := range b.caches.overlayKeys() {
			if e, _ := b.caches.overlay.Get(k); len(e.Object) == 0 || strings.Contains(string(e.Object), "424242") {
				b.Errorf("kept: %s", e.Object)
			}
		}
		const full = 2 // the full reads of shows
		b.checkReads(full)
	})
}

// Promise 7: a list that was begun at the server is ended there; the cache would show all
// of it once more.
func TestContinuedListIsTheServers(t *testing.T) {
	t.Parallel()
	withFixture(t, everything, func(b *fixture) {
		for _, query := range []url.Values{
			{"continue": {"x"}}, {"resourceVersion": {"5"}}, {"shardSelector": {"x"}}, {"fieldSelector": {"spec.nodeName=x"}},
		} {
			r := request(wire.VerbList, "", "")
			r.Query = query
			if b.must(r).Cached {
				b.Errorf("%v was answered by the cache", query)
			}
		}
	})
}

// Reads return private copies, also of objects in the overlay.
func TestWrittenObjectsArePrivate(t *testing.T) {
	t.Parallel()
	withFixture(t, everything, func(b *fixture) {
		answer := b.must(request(wire.VerbCreate, "", `{"metadata":{"name":"a"}}`))
		clear(answer.Body)
		first := b.must(request(wire.VerbGet, "a", ""))
		clear(first.Body)
		b.checkReads(0)
	})
}

// Promise 7: while it cannot be found out when a deletion of a collection was over, reads
// are live.
func TestScopeThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	withFixture(t, everything, func(b *fixture) {
		b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"a"}}`))
		b.catchUp()
		b.client = b.caches.Handler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Verb == wire.VerbList && r.Query.Get("limit") == "1" {
				return nil, &wire.Error{Code: http.StatusServiceUnavailable}
			}
			return b.server.Do(ctx, r)
		}))
		b.must(request(wire.VerbDeleteCollection, "", ""))
		b.checkReads(4)
	})
}

// Regression: in a program without writes, such as a standby, the unknown states of objects that nobody reads stayed for
// ever.
func TestDoubtsGoWithoutWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.server.Bookmarks(time.Minute)
		f.stream.Cut() // the next watch has bookmarks
		synctest.Wait()
		const n = 1000
		for i := range n {
			f.cache.RecordPossiblyGone(wire.Ref{Resource: webApps.Resource, Namespace: "ns", Name: "gone-" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + time.Duration(i).String()})
		}
		time.Sleep(24 * time.Hour)
		if left := f.cache.overlay.Len(); left > 100 {
			t.Errorf("a day later the overlay has %d entries of %d objects that do not exist", left, n)
		}
	})
}

// Regression: a stream of a kind that was never listed, for want of a permission, kept the answers to all writes of
// the kind in memory, with their contents, although another stream of the kind showed them.
func TestWritesGoWhileAStreamIsNotSynced(t *testing.T) {
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
			if _, err := f.do(f.handler, wire.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if _, err := f.do(f.server, wire.VerbDelete, name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if _, err := f.do(f.handler, wire.VerbPatch, "last"); err != nil { // a write sweeps
			t.Fatal(err)
		}
		if left := f.cache.overlay.Len(); left > 100 {
			t.Errorf("an hour later the overlay has %d entries of %d objects that are gone", left, n)
		}
	})
}
