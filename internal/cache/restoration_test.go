package cache

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: after the restoration of a backup, reads went on to return what this program had
// written before, because the versions of that were newer.
func TestRestorationUndoesOwnWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.check("Synced ")
		if _, err := f.do(f.server, wire.VerbPatch, "seen"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.stream.Freeze()
		if _, err := f.do(f.handler, wire.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Restore(backup)
		f.stream.Thaw()
		time.Sleep(50 * time.Second)
		f.check("Added seen", "Deleted seen", "Deleted written", "DoubtSettled ")
		if _, err := f.do(f.handler, wire.VerbGet, "written"); !kube.IsNotFound(err) {
			t.Errorf("reading what the restoration has undone: %v", err)
		}
	})
}

// Regression: after the restoration of a backup, a store that was not listed yet passed for newer than
// the change shown by a stream of the new past, and answered reads.
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
		if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
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
		h := f.cache.View(sub).Handler(wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			live++
			return f.server.Do(ctx, r)
		}))
		if _, err := f.do(h, wire.VerbGet, "a"); !kube.IsNotFound(err) || live != 1 {
			t.Errorf("reading what the restoration has undone: %v, %d live reads", err, live)
		}
	})
}

// Regression: a stream that found a restoration of a backup took the store of another stream for a
// store of the lost past, because the other store had already gone on from the restored state. Nothing
// ever listed the other store again, so that every read was live and every apply was sent.
func TestRestorationListsTheStoresOfThePast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		other := webApps
		other.LabelSelector = "a=b"
		var restored atomic.Int32
		open(t, t.Context(), f.cache, other, func(c Change) {
			if c.Type == DoubtSettled {
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
		if _, err := f.do(f.server, wire.VerbPatch, "new"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		// The stream that was not ahead of the backup lists at a random time.
		f.mu.Lock()
		slices.Sort(f.changes)
		f.mu.Unlock()
		f.check("Added new", "DoubtSettled ", "DoubtSettled ")
		if n := restored.Load(); n != 2 {
			t.Errorf("the other subscriber received %d restorations, want one for each list", n)
		}
		f.server.ForgetRequests()
		if _, err := f.do(f.handler, wire.VerbGet, "new"); err != nil {
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
		if _, err := f.do(f.server, wire.VerbPatch, "deleted"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Freeze()
		if _, err := f.do(f.handler, wire.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Stream(fakeserver.StreamID{Plural: "others"}).Bookmark()
		synctest.Wait()
		if _, err := f.do(f.handler, wire.VerbDelete, "deleted"); err != nil {
			t.Fatal(err)
		}
		f.server.Restore(backup)
		f.stream.Thaw()
		time.Sleep(30 * time.Second)
		if _, err := f.do(f.handler, wire.VerbGet, "written"); !kube.IsNotFound(err) {
			t.Errorf("reading what the restoration has undone: %v", err)
		}
		if _, err := f.do(f.handler, wire.VerbGet, "deleted"); err != nil {
			t.Errorf("reading an object whose deletion was undone: %v", err)
		}
	})
}

// Regression: until a watch had found that a backup was restored, a program read the undone state from the
// store and the present state from the server in turn, and undid its own writes without a pause. An answer
// that is older than what the store shows is a proof.
func TestAnswerOlderThanTheStoreShowsARestoration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		label := &wire.Request{
			Verb: wire.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: wire.ContentMergePatch, Body: []byte(`{"metadata":{"labels":{"lost":"yes"}}}`),
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
		f.check("Modified a", "DoubtSettled ")
	})
}

// Regression: a backup was restored that lacked a write of this program. No stream had seen the write
// or anything newer, so that nobody noticed. For a minute an apply was skipped because of the write
// that was lost.
func TestEndOfAWatchPutsWritesThatItHasNotShownInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Freeze()
		if _, err := f.do(f.handler, wire.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Restore(backup)
		f.stream.Thaw()
		time.Sleep(5 * time.Second)
		if _, err := f.do(f.handler, wire.VerbGet, "written"); !kube.IsNotFound(err) {
			t.Errorf("reading what the restoration has undone: %v", err)
		}
	})
}

// Regression: a backup was restored that lacked the last write of this program. No stream had seen the
// write or anything newer. Nothing was reconciled because of the loss, until something else changed.
// The program knows the version that the server had answered with.
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
		}, want: []string{"Deleted written", "DoubtSettled "}},
		"by the end of the next watch, if nothing happens": {lead: 1000, after: func(f *follower) {
			time.Sleep(2 * time.Minute)
			f.stream.Cut()
		}, want: []string{"Deleted written", "DoubtSettled "}},
		"by a change of another object that passes the version": {lead: 1, after: func(f *follower) {
			for _, name := range []string{"x", "y"} {
				if _, err := f.do(f.server, wire.VerbPatch, name); err != nil {
					t.Fatal(err)
				}
			}
		}, want: []string{"Added x", "Added y", "DoubtSettled "}},
		"by a bookmark that passes the version": {lead: 1, after: func(f *follower) {
			f.server.Advance(10)
			f.stream.Bookmark()
		}, want: []string{"DoubtSettled "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFollower(t)
				f.check("Synced ")
				backup := f.server.Snapshot()
				f.server.Advance(test.lead)
				f.stream.Freeze()
				if _, err := f.do(f.handler, wire.VerbPatch, "written"); err != nil {
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
			if _, err := f.do(f.handler, wire.VerbPatch, name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.do(f.server, wire.VerbDelete, "b"); err != nil {
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
// that found the restoration dropped the writes of the program. The other stream could not publish the
// loss of a written object when the stream came back.
func TestRestorationKeepsWhatAnotherStreamHasToPublish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		metadata := webApps
		metadata.Representation = wire.MetadataOnly
		check := f.openSecond(metadata)
		away := f.server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural, Representation: wire.MetadataOnly})
		away.Freeze()
		if _, err := f.do(f.handler, wire.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Bookmark()
		synctest.Wait()
		away.Refuse(http.StatusServiceUnavailable, "")
		f.server.Restore(backup)
		time.Sleep(30 * time.Second)
		f.check("Synced ", "Added written", "DoubtSettled ")
		if _, err := f.do(f.server, wire.VerbDelete, "written"); err != nil {
			t.Fatal(err)
		}
		f.server.Compact()
		away.Thaw()
		away.Allow()
		time.Sleep(time.Minute)
		check("Synced ", "DoubtSettled ", "Deleted written", "DoubtSettled ")
	})
}

// Regression: a store had reached a version by a bookmark, and a backup of before was restored. Its
// stream could not list. Answers were newer than the objects that the store showed, and older than the
// version of the store. Such an answer is a proof too. A program read the lost past and the present in
// turn, and sent requests without a pause.
func TestAnswerThatTheStoreShouldShowIsAContradiction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		backup := f.server.Snapshot()
		f.server.Advance(1000)
		f.stream.Bookmark()
		synctest.Wait()
		f.server.Restore(backup)
		f.stream.Refuse(http.StatusServiceUnavailable, "")
		label := &wire.Request{
			Verb: wire.VerbPatch, Resource: webApps.Resource, Namespace: "ns", Name: "a",
			ContentType: wire.ContentMergePatch, Body: []byte(`{"metadata":{"labels":{"new":"yes"}}}`),
		}
		if _, err := f.handler.Do(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			response, err := f.do(f.handler, wire.VerbGet, "a")
			if err != nil || !strings.Contains(string(response.Body), `"new"`) {
				t.Errorf("the program does not read what it has written: %v", err)
			}
		}
	})
}

// Regression: a kind that need not be served is removed, shortly after the program has written an object of the kind.
// The watch has not shown the object. The removal counted as the restoration of a backup.
func TestRemovedKindIsNoRestoration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, kind := newRemovableKind()
		h := wire.Handler(kind)
		var errs []string
		c := New(h, OnError(func(_ wire.Stream, err error) { errs = append(errs, err.Error()) }))
		t.Cleanup(c.Close)
		id := webApps
		id.IfServed = true
		other := webApps
		other.Resource.Plural, other.Resource.Kind = "others", "Other"
		open(t, t.Context(), c, id, func(Change) {})
		var restored, lists atomic.Int32
		open(t, t.Context(), c, other, func(ch Change) {
			if ch.Type == DoubtSettled {
				restored.Add(1)
			}
		})
		synctest.Wait()
		stream := server.Stream(fakeserver.StreamID{Plural: webApps.Resource.Plural})
		stream.Freeze()
		f := &follower{T: t, server: server, cache: c, handler: c.Handler(h)}
		if _, err := f.do(f.handler, wire.VerbPatch, "written"); err != nil {
			t.Fatal(err)
		}
		server.Advance(10)
		server.Stream(fakeserver.StreamID{Plural: "others"}).Bookmark()
		synctest.Wait()
		server.ForgetRequests()
		kind.isAbsent.Store(true)
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
