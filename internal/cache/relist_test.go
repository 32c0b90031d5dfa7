package cache

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// follower is a Cache on a fake API server, with a stream of webApps that is recorded.
type follower struct {
	*testing.T
	server  *fakeserver.Server
	cache   *Cache
	handler wire.Handler
	stream  *fakeserver.Stream
	// mu guards changes, which other streams of the cache add to as well.
	mu      sync.Mutex
	changes []string
}

func newFollower(t *testing.T) *follower {
	f := &follower{T: t, server: fakeserver.New(), stream: nil}
	f.cache = New(f.server)
	t.Cleanup(f.cache.Close)
	f.stream = f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural})
	open(t, t.Context(), f.cache, webApps, func(c Change) {
		content, err := c.AfterObject().Bytes()
		if c.Type == Deleted {
			content, err = c.BeforeObject().Bytes()
		}
		if c.Type != Synced && c.Type != DoubtSettled && (err != nil || len(content) == 0) {
			t.Errorf("the content of %s %s: %q, %v", c.Type, c.Record().Name, content, err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changes = append(f.changes, fmt.Sprint(c.Type, " ", c.Record().Name))
	})
	f.handler = f.cache.Handler(f.server)
	synctest.Wait()
	return f
}

// do sends a request through h.
func (f *follower) do(h wire.Handler, verb wire.Verb, name string) (*wire.Response, error) {
	r := &wire.Request{Verb: verb, Resource: webApps.Resource, Namespace: "ns", Name: name}
	if verb == wire.VerbPatch {
		r.ContentType, r.Query = wire.ContentApply, map[string][]string{"fieldManager": {"test"}, "force": {"true"}}
		r.Body = fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"size":1}}`, name)
	}
	return h.Do(f.Context(), r)
}

func (f *follower) check(want ...string) {
	f.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(want, f.changes); diff != "" {
		f.Errorf("the changes (-want +got):\n%s", diff)
	}
	f.changes = nil
}

// openSecond opens another stream of f's cache. The returned function checks the changes of that stream
// since the last check, each by its type and name.
func (f *follower) openSecond(s wire.Stream) (check func(want ...string)) {
	var mu sync.Mutex
	var changes []string
	open(f.T, f.Context(), f.cache, s, func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, fmt.Sprint(c.Type, " ", c.Record().Name))
	})
	synctest.Wait()
	return func(want ...string) {
		f.Helper()
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, changes); diff != "" {
			f.Errorf("the changes (-want +got):\n%s", diff)
		}
		changes = nil
	}
}

// TestRelistOfAFieldSelector writes the objects a and b while the watch of a stream is away, which selects a by its name.
// Somebody deletes a. The list that follows published that b was deleted, although the stream never selected b, and b
// exists. The deletion of a has to be published.
func TestRelistOfAFieldSelector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		selecting := webApps
		selecting.FieldSelector = "metadata.name=a"
		check := f.openSecond(selecting)
		stream := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, FieldSelector: "metadata.name=a"})
		stream.Freeze()
		for _, name := range []string{"a", "b"} {
			if _, err := f.do(f.handler, wire.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.do(f.server, wire.VerbDelete, "a"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		stream.Expire()
		stream.Thaw()
		time.Sleep(time.Minute)
		check("Synced ", "Deleted a")
	})
}

// Regression: this program created an object while the watch was away, somebody deleted the
// object, and the list that followed contained it no more. Neither the store nor the list knew
// the object, so nobody was triggered, and it was never created again.
func TestDeletionOfAnObjectThatOnlyTheProgramsOwnWriteShowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.check("Synced ")
		f.stream.Refuse(http.StatusServiceUnavailable, "")
		f.stream.Cut()
		for _, name := range []string{"kept", "deleted"} {
			if _, err := f.do(f.handler, wire.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.do(f.server, wire.VerbDelete, "deleted"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		f.stream.Allow()
		time.Sleep(time.Minute)
		f.check("Added kept", "Deleted deleted")
		if _, err := f.do(f.handler, wire.VerbGet, "deleted"); !kube.IsNotFound(err) {
			t.Errorf("reading the deleted object: %v", err)
		}
	})
}

// Regression: the deletion of an object that only this program's write had shown was not published
// if the watch was away for longer than a minute: the content of the write was dropped by then.
func TestDeletionOfAnObjectThatWasWrittenLongAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.check("Synced ")
		f.stream.Refuse(http.StatusServiceUnavailable, "")
		f.stream.Cut()
		if _, err := f.do(f.handler, wire.VerbPatch, "deleted"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.do(f.server, wire.VerbDelete, "deleted"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, err := f.do(f.handler, wire.VerbPatch, "kept"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		f.stream.Allow()
		time.Sleep(time.Minute)
		f.check("Added kept", "Deleted deleted")
	})
}

// Regression: this program created an object while its stream showed nothing, somebody deleted the
// object, and the program read that live (seed 2031142 of the model of a program). The list that
// followed published no deletion, so the owner of the object was not reconciled.
func TestDeletionOfAWrittenObjectThatWasReadLive(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*follower){
		"by somebody else": func(f *follower) {
			if _, err := f.do(f.server, wire.VerbDelete, "deleted"); err != nil {
				f.Fatal(err)
			}
			time.Sleep(2 * time.Minute) // the program's own write is too old to be read
			if _, err := f.do(f.handler, wire.VerbGet, "deleted"); !kube.IsNotFound(err) {
				f.Errorf("reading the deleted object: %v", err)
			}
		},
		"by the program": func(f *follower) {
			if _, err := f.do(f.handler, wire.VerbDelete, "deleted"); err != nil {
				f.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollower(t)
				f.check("Synced ")
				f.stream.Refuse(http.StatusServiceUnavailable, "")
				f.stream.Cut()
				if _, err := f.do(f.handler, wire.VerbPatch, "deleted"); err != nil {
					t.Fatal(err)
				}
				remove(f)
				f.server.Compact()
				f.stream.Allow()
				time.Sleep(time.Minute)
				f.check("Deleted deleted")
				f.stream.Cut()
				f.server.Compact()
				time.Sleep(time.Minute)
				f.check() // once is enough
			})
		})
	}
}

// Regression: an object that only this program's own write had shown was deleted and made anew by
// somebody else while the watch was away. The list that followed published the successor alone, so
// the owner of the first object was not reconciled if it does not own the successor.
func TestReplacementOfAnObjectThatOnlyTheProgramsOwnWriteShowed(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]bool{"not read": false, "read live": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollower(t)
				f.check("Synced ")
				f.stream.Refuse(http.StatusServiceUnavailable, "")
				f.stream.Cut()
				if _, err := f.do(f.handler, wire.VerbPatch, "replaced"); err != nil {
					t.Fatal(err)
				}
				for _, verb := range []wire.Verb{wire.VerbDelete, wire.VerbPatch} {
					if _, err := f.do(f.server, verb, "replaced"); err != nil {
						t.Fatal(err)
					}
				}
				if read {
					time.Sleep(2 * time.Minute)
					if _, err := f.do(f.handler, wire.VerbGet, "replaced"); err != nil {
						t.Fatal(err)
					}
				}
				f.server.Compact()
				f.stream.Allow()
				time.Sleep(time.Minute)
				f.check("Deleted replaced", "Added replaced")
			})
		})
	}
}

// Regression: an object written without the labels that a stream selects was published as deleted after
// each list. Until another store had reached the version of the list, a controller read everything in
// the namespace live.
func TestObjectThatNeverMatchedHasNotVanished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.LabelSelector = "a=b"
		check := f.openSecond(other)
		selecting := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"})
		selecting.Refuse(http.StatusServiceUnavailable, "")
		selecting.Cut()
		if _, err := f.do(f.handler, wire.VerbPatch, "unlabelled"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		selecting.Allow()
		time.Sleep(time.Minute)
		check("Synced ")
	})
}

// Regression: an object was created with the labels that a stream selects, while the stream was away,
// lost them, and was written once more. The stream never published that the object was gone, because
// the last write had no such labels.
func TestObjectThatMatchedWhileTheStreamWasAwayHasVanished(t *testing.T) {
	t.Parallel()
	patch := func(h wire.Handler, body string) error {
		_, err := h.Do(t.Context(), &wire.Request{
			Verb: wire.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: wire.ContentMergePatch, Body: []byte(body),
		})
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.LabelSelector = "a=b"
		changes := make(chan string, 10)
		open(t, t.Context(), f.cache, other, func(c Change) {
			changes <- fmt.Sprint(c.Type, " ", c.Record().Name, " ", maps.Collect(c.Record().Labels.All()))
		})
		synctest.Wait()
		selecting := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"})
		selecting.Refuse(http.StatusServiceUnavailable, "")
		selecting.Cut()
		_, err := f.do(f.handler, wire.VerbPatch, "a")
		for _, write := range []struct {
			handler wire.Handler
			body    string
		}{
			{f.handler, `{"metadata":{"labels":{"a":"b","n":"1"}}}`},
			{f.handler, `{"metadata":{"labels":{"n":"2"}}}`},
			{f.server, `{"metadata":{"labels":null}}`},
			{f.handler, `{"spec":{"size":2}}`},
		} {
			if err == nil {
				err = patch(write.handler, write.body)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		selecting.Allow()
		time.Sleep(time.Minute)
		var got []string
		for len(changes) > 0 {
			got = append(got, <-changes)
		}
		if diff := cmp.Diff([]string{"Synced  map[]", "Deleted a map[a:b n:2]"}, got); diff != "" {
			t.Errorf("the changes (-want +got):\n%s", diff)
		}
	})
}
