package cache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: one object that could not be read emptied every list of its kind. The other objects are served,
// and the error names the object.
func TestListServesTheNeighboursOfAnUnreadableObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := newServer(webApps.Resource)
		object := func(name, uid string) func(int) string {
			return func(version int) string {
				return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":%q,"namespace":"ns","uid":%s,"resourceVersion":"%d"},"spec":1}`, name, uid, version)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			server.put(kube.Key{Namespace: "ns", Name: name}, object(name, `"`+name+`"`))
		}
		caches := New(server)
		defer caches.Close()
		open(t, t.Context(), caches, webApps, func(Change) {})
		synctest.Wait()
		server.put(b, object("b", "7")) // a uid that is no string
		synctest.Wait()
		apps, err := kube.Namespaced[labelled](kube.NewClientFromHandler(caches.Handler(server)), "ns").List(t.Context())
		unreadable, ok := errors.AsType[*wire.DecodeError](err)
		if len(apps) != 2 || !ok || unreadable.Ref.Name != "b" {
			t.Errorf("%d objects, want a and c; error: %v", len(apps), err)
		}
	})
}

// Regression: a list from the cache decompressed every object before the first one was
// returned. It holds one page at a time.
func TestListHoldsOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(webApps.Resource)
		const count = 5000
		for i := range count {
			k := kube.Key{Namespace: "ns", Name: fmt.Sprint("o", i)}
			server.put(k, func(version int) string {
				return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":%q,"namespace":"ns","uid":"u%d","resourceVersion":"%d"},"spec":%d,"status":%d,"text":%q}`,
					k.Name, i, version, i, rand.Int32(), strings.Repeat("some text that compresses well ", 160))
			})
		}
		caches := New(server)
		defer caches.Close()
		open(t, t.Context(), caches, webApps, func(Change) {})
		synctest.Wait()
		client := kube.NewClientFromHandler(caches.Handler(server))
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, read := heap(), 0
		for _, err := range kube.Namespaced[labelled](client, "ns").Each(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if read%500 == 0 {
				if more := (heap() - before) >> 20; more > 2 {
					t.Fatalf("%d objects, kept in %d KiB: %d MiB more on the heap when number %d is yielded", count, caches.Stats()[0].Bytes>>10, more, read)
				}
			}
			if read++; read > 1500 {
				break
			}
		}
	})
}

// newPagedFollower returns a follower of the objects a, b and c, and a function that reads a page of their live list
// and returns where the next page begins.
func newPagedFollower(t *testing.T) (f *follower, page func(next string) string) {
	t.Helper()
	f = newFollower(t)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := f.do(f.server, wire.VerbPatch, name); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	page = func(next string) string {
		r := webApps.Request(wire.VerbList, "limit", "1", "continue", next)
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
	return f, page
}

// Regression: the program lists in pages with Client.Live, and deletes an object between two pages. The second page
// has the version of the first one. It passed for a version after the deletion, so a store that had not seen the
// deletion answered the next read.
func TestSecondPageOfALiveListDoesNotHideADeletion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, page := newPagedFollower(t)
		next := page("")
		f.stream.Freeze()
		if _, err := f.do(f.handler, wire.VerbDelete, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.do(f.handler, wire.VerbGet, "a"); !kube.IsNotFound(err) {
			t.Errorf("after the deletion: %v", err)
		}
		page(next)
		if _, err := f.do(f.handler, wire.VerbGet, "a"); !kube.IsNotFound(err) {
			t.Errorf("after the second page the deleted object is read again: %v", err)
		}
	})
}

// Regression: the same with a collection that was deleted.
func TestSecondPageOfALiveListDoesNotSettleADeletedCollection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, page := newPagedFollower(t)
		next := page("")
		f.stream.Freeze()
		all := &wire.Request{Verb: wire.VerbDeleteCollection, Resource: webApps.Resource, Namespace: "ns"}
		if _, err := f.handler.Do(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		page(next)
		if _, err := f.do(f.handler, wire.VerbGet, "a"); !kube.IsNotFound(err) {
			t.Errorf("after the second page an object of the deleted collection is read: %v", err)
		}
	})
}
