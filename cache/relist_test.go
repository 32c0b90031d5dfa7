package cache

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/fakeserver"
	"github.com/yare-go/yare/kube"
)

// follower is a Cache on a fake API server, with a stream of webApps that is recorded.
type follower struct {
	*testing.T
	server  *fakeserver.Server
	cache   *Cache
	handler kube.Handler
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
		if c.Type != Synced && c.Type != Restored && (err != nil || len(content) == 0) {
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
func (f *follower) do(h kube.Handler, verb kube.Verb, name string) (*kube.Response, error) {
	r := &kube.Request{Verb: verb, Resource: webApps.Resource, Namespace: "ns", Name: name}
	if verb == kube.VerbPatch {
		r.ContentType, r.Query = kube.ContentApply, map[string][]string{"fieldManager": {"test"}, "force": {"true"}}
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
			if _, err := f.do(f.handler, kube.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.do(f.server, kube.VerbDelete, "deleted"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		f.stream.Allow()
		time.Sleep(time.Minute)
		f.check("Added kept", "Deleted deleted")
		if _, err := f.do(f.handler, kube.VerbGet, "deleted"); !kube.IsNotFound(err) {
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
		if _, err := f.do(f.handler, kube.VerbPatch, "deleted"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.do(f.server, kube.VerbDelete, "deleted"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if _, err := f.do(f.handler, kube.VerbPatch, "kept"); err != nil {
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
			if _, err := f.do(f.server, kube.VerbDelete, "deleted"); err != nil {
				f.Fatal(err)
			}
			time.Sleep(2 * time.Minute) // the program's own write is too old to be read
			if _, err := f.do(f.handler, kube.VerbGet, "deleted"); !kube.IsNotFound(err) {
				f.Errorf("reading the deleted object: %v", err)
			}
		},
		"by the program": func(f *follower) {
			if _, err := f.do(f.handler, kube.VerbDelete, "deleted"); err != nil {
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
				if _, err := f.do(f.handler, kube.VerbPatch, "deleted"); err != nil {
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
				if _, err := f.do(f.handler, kube.VerbPatch, "replaced"); err != nil {
					t.Fatal(err)
				}
				for _, verb := range []kube.Verb{kube.VerbDelete, kube.VerbPatch} {
					if _, err := f.do(f.server, verb, "replaced"); err != nil {
						t.Fatal(err)
					}
				}
				if read {
					time.Sleep(2 * time.Minute)
					if _, err := f.do(f.handler, kube.VerbGet, "replaced"); err != nil {
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

// Regression: after the restoration of a backup, reads went on to return what this program had
// written before, because the versions of that were newer.
func TestRestorationUndoesOwnWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.check("Synced ")
		if _, err := f.do(f.server, kube.VerbPatch, "seen"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.stream.Freeze()
		if _, err := f.do(f.handler, kube.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Restore(backup)
		f.stream.Thaw()
		time.Sleep(50 * time.Second)
		f.check("Added seen", "Deleted seen", "Deleted written", "Restored ")
		if _, err := f.do(f.handler, kube.VerbGet, "written"); !kube.IsNotFound(err) {
			t.Errorf("reading what the restoration has undone: %v", err)
		}
	})
}

// Regression: after the restoration of a backup, a store that was not listed yet passed for
// newer than the change that a stream of the new past had shown, and answered reads.
func TestViewDoesNotUseAStoreOfThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		own := webApps
		own.LabelSelector = "a=b"
		sub := open(t, t.Context(), f.cache, own, func(Change) {})
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		if _, err := f.do(f.server, kube.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.server.Advance(1000)
		f.stream.Bookmark()
		f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"}).Bookmark()
		synctest.Wait()
		f.stream.Refuse(http.StatusServiceUnavailable, "")
		f.server.Restore(backup)
		time.Sleep(time.Minute)
		live := 0
		h := f.cache.View(sub).Handler(kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
			live++
			return f.server.Do(ctx, r)
		}))
		if _, err := f.do(h, kube.VerbGet, "a"); !kube.IsNotFound(err) || live != 1 {
			t.Errorf("reading what the restoration has undone: %v, %d live reads", err, live)
		}
	})
}

// Regression: a stream that found out that a backup had been restored took the store of another
// stream for one of the lost past, because that store had already gone on from the restored state.
// Nothing ever listed that store again, so that every read was live and every apply was sent.
func TestRestorationListsTheStoresOfThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.LabelSelector = "a=b"
		var restored atomic.Int32
		open(t, t.Context(), f.cache, other, func(c Change) {
			if c.Type == Restored {
				restored.Add(1)
			}
		})
		synctest.Wait()
		selecting := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"})
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		selecting.Bookmark()
		f.check("Synced ")
		f.server.Restore(backup)
		selecting.Delay(8 * time.Second)
		time.Sleep(16 * time.Second) // the probe has led to a list, whose end is under way
		if _, err := f.do(f.server, kube.VerbPatch, "new"); err != nil {
			t.Fatal(err)
		}
		f.check("Added new")
		time.Sleep(time.Minute)
		f.check("Restored ", "Restored ")
		if n := restored.Load(); n != 2 {
			t.Errorf("the other subscriber received %d restorations, want one for each list", n)
		}
		f.server.ForgetRequests()
		if _, err := f.do(f.handler, kube.VerbGet, "new"); err != nil {
			t.Fatal(err)
		}
		for _, e := range f.server.Requests() {
			t.Errorf("the read was sent to the server: %s %s", e.Request.Verb, e.Request.Name)
		}
	})
}

// Regression: after the restoration of a backup, reads returned what this program had written
// before, because the stream of that kind had not seen the write, and so lost nothing itself.
func TestRestorationPutsWritesOfOtherKindsInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		open(t, t.Context(), f.cache, other, func(Change) {})
		if _, err := f.do(f.server, kube.VerbPatch, "deleted"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Freeze()
		if _, err := f.do(f.handler, kube.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Stream(fakeserver.StreamID{Plural: "others"}).Bookmark()
		synctest.Wait()
		if _, err := f.do(f.handler, kube.VerbDelete, "deleted"); err != nil {
			t.Fatal(err)
		}
		f.server.Restore(backup)
		f.stream.Thaw()
		time.Sleep(30 * time.Second)
		if _, err := f.do(f.handler, kube.VerbGet, "written"); !kube.IsNotFound(err) {
			t.Errorf("reading what the restoration has undone: %v", err)
		}
		if _, err := f.do(f.handler, kube.VerbGet, "deleted"); err != nil {
			t.Errorf("reading an object whose deletion was undone: %v", err)
		}
	})
}

// Regression: until a watch had found that a backup was restored, a program read the lost past from
// the store and the present from the server in turn, and undid its own writes without a pause. An
// answer that is older than what the store shows is a proof.
func TestAnswerOlderThanTheStoreShowsARestoration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		if _, err := f.do(f.server, kube.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		label := &kube.Request{
			Verb: kube.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: kube.ContentMergePatch, Body: []byte(`{"metadata":{"labels":{"lost":"yes"}}}`),
		}
		if _, err := f.server.Do(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		f.check("Synced ", "Added a", "Modified a")
		f.server.Restore(backup)
		time.Sleep(time.Second)
		label.Body = []byte(`{"metadata":{"labels":{"new":"yes"}}}`)
		if _, err := f.handler.Do(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the probe would come ten seconds later
		f.check("Modified a", "Restored ")
	})
}

// Regression: a backup was restored that lacked what this program had written, and no stream had
// seen that or anything newer, so that nobody noticed. For a minute an apply was skipped because of
// the write that was lost.
func TestEndOfAWatchPutsWritesThatItHasNotShownInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Freeze()
		if _, err := f.do(f.handler, kube.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Restore(backup)
		f.stream.Thaw()
		time.Sleep(5 * time.Second)
		if _, err := f.do(f.handler, kube.VerbGet, "written"); !kube.IsNotFound(err) {
			t.Errorf("reading what the restoration has undone: %v", err)
		}
	})
}

// Regression: a backup was restored that lacked what this program had written last, and no stream had
// seen that or anything newer. Nothing was reconciled because of the loss, until something else
// changed. The program knows the version that the server had answered with.
func TestLossOfAWriteThatNoWatchHasShownIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// lead is how far the server was ahead of the backup when it answered the write.
		lead int
		// after happens to the restored server.
		after func(f *follower)
		want  []string
	}{
		"by bookmarks that do not reach the version": {lead: 1000, after: func(f *follower) {
			for range 3 {
				time.Sleep(40 * time.Second)
				f.server.Advance(1)
				f.stream.Bookmark()
			}
		}, want: []string{"Deleted written", "Restored "}},
		"by the end of the next watch, if nothing happens": {lead: 1000, after: func(f *follower) {
			time.Sleep(2 * time.Minute)
			f.stream.Cut()
		}, want: []string{"Deleted written", "Restored "}},
		"by a change of another object that passes the version": {lead: 1, after: func(f *follower) {
			for _, name := range []string{"x", "y"} {
				if _, err := f.do(f.server, kube.VerbPatch, name); err != nil {
					t.Fatal(err)
				}
			}
		}, want: []string{"Added x", "Added y", "Restored "}},
		"by a bookmark that passes the version": {lead: 1, after: func(f *follower) {
			f.server.Advance(10)
			f.stream.Bookmark()
		}, want: []string{"Restored "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollower(t)
				f.check("Synced ")
				backup := f.server.Snapshot()
				f.server.Advance(test.lead)
				f.stream.Freeze()
				if _, err := f.do(f.handler, kube.VerbPatch, "written"); err != nil {
					t.Fatal(err)
				}
				f.server.Restore(backup)
				f.stream.Thaw()
				time.Sleep(5 * time.Second)
				f.check()
				test.after(f)
				time.Sleep(5 * time.Second)
				f.check(test.want...)
			})
		})
	}
}

// What the program has written and the watch shows later is no loss, in whatever order answers and
// changes arrive.
func TestWritesThatTheWatchShowsAreNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		f.check("Synced ")
		f.stream.Freeze()
		for _, name := range []string{"a", "b", "a", "c"} { // the second write of a changes nothing
			if _, err := f.do(f.handler, kube.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.do(f.server, kube.VerbDelete, "b"); err != nil {
			t.Fatal(err)
		}
		f.stream.Cut()
		f.stream.Thaw()
		time.Sleep(5 * time.Second)
		for range 3 {
			time.Sleep(40 * time.Second)
			f.stream.Bookmark()
		}
		f.check("Added a", "Added b", "Added c", "Deleted b")
		if n := f.cache.Stats()[0].Restarts; n != 0 {
			t.Errorf("the stream was listed %d more times", n)
		}
	})
}

// Regression: a stream that had lost nothing itself was away while a backup was restored. The stream
// that found the restoration dropped what the program had written, and the other one could not publish
// that such an object was gone when it came back.
func TestRestorationKeepsWhatAnotherStreamHasToPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		metadata := webApps
		metadata.Representation = kube.MetadataOnly
		changes := make(chan string, 10)
		open(t, t.Context(), f.cache, metadata, func(c Change) { changes <- fmt.Sprint(c.Type, " ", c.Record().Name) })
		synctest.Wait()
		away := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, Representation: kube.MetadataOnly})
		away.Freeze()
		if _, err := f.do(f.handler, kube.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Bookmark()
		synctest.Wait()
		f.server.Restore(backup)
		time.Sleep(30 * time.Second)
		f.check("Synced ", "Added written", "Restored ")
		if _, err := f.do(f.server, kube.VerbDelete, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		away.Thaw()
		time.Sleep(time.Minute)
		var got []string
		for len(changes) > 0 {
			got = append(got, <-changes)
		}
		if diff := cmp.Diff([]string{"Synced ", "Restored ", "Deleted written"}, got); diff != "" {
			t.Errorf("the changes (-want +got):\n%s", diff)
		}
	})
}

// Regression: a store had reached a version by a bookmark, and a backup of before was restored. Its
// stream could not list. Answers were newer than the objects that the store showed, and older than the
// version of the store, which is a proof too. A program read the lost past and the present in turn, and
// sent requests without a pause.
func TestAnswerThatTheStoreShouldShowIsAContradiction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		if _, err := f.do(f.server, kube.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Bookmark()
		synctest.Wait()
		f.server.Restore(backup)
		f.stream.Refuse(http.StatusServiceUnavailable, "")
		label := &kube.Request{
			Verb: kube.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: kube.ContentMergePatch, Body: []byte(`{"metadata":{"labels":{"new":"yes"}}}`),
		}
		if _, err := f.handler.Do(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			response, err := f.do(f.handler, kube.VerbGet, "a")
			if err != nil || !strings.Contains(string(response.Body), `"new"`) {
				t.Errorf("the program does not read what it has written: %v", err)
			}
		}
	})
}

// Regression: an object that was written without the labels that a stream selects was published
// as deleted after each list. Until another store had reached the version of that list, a
// controller read everything in that namespace live.
func TestObjectThatNeverMatchedHasNotVanished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.LabelSelector = "a=b"
		changes := make(chan string, 10)
		open(t, t.Context(), f.cache, other, func(c Change) { changes <- fmt.Sprint(c.Type, " ", c.Record().Name) })
		synctest.Wait()
		selecting := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"})
		selecting.Refuse(http.StatusServiceUnavailable, "")
		selecting.Cut()
		if _, err := f.do(f.handler, kube.VerbPatch, "unlabelled"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		selecting.Allow()
		time.Sleep(time.Minute)
		var got []string
		for len(changes) > 0 {
			got = append(got, <-changes)
		}
		if diff := cmp.Diff([]string{"Synced "}, got); diff != "" {
			t.Errorf("the changes (-want +got):\n%s", diff)
		}
	})
}

// Regression: an object was created with the labels that a stream selects, while the stream was away,
// lost them, and was written once more. The stream never published that the object was gone, because
// the last write had no such labels.
func TestObjectThatMatchedWhileTheStreamWasAwayHasVanished(t *testing.T) {
	t.Parallel()
	patch := func(h kube.Handler, body string) error {
		_, err := h.Do(t.Context(), &kube.Request{
			Verb: kube.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: kube.ContentMergePatch, Body: []byte(body),
		})
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.LabelSelector = "a=b"
		changes := make(chan string, 10)
		open(t, t.Context(), f.cache, other, func(c Change) {
			changes <- fmt.Sprint(c.Type, " ", c.Record().Name, " ", c.Record().Labels)
		})
		synctest.Wait()
		selecting := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, LabelSelector: "a=b"})
		selecting.Refuse(http.StatusServiceUnavailable, "")
		selecting.Cut()
		_, err := f.do(f.handler, kube.VerbPatch, "a")
		for _, write := range []struct {
			handler kube.Handler
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
		if diff := cmp.Diff([]string{"Synced  ", "Deleted a a=b,n=2"}, got); diff != "" {
			t.Errorf("the changes (-want +got):\n%s", diff)
		}
	})
}
