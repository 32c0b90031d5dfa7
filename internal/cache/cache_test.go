package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// recordChanges returns a subscriber that appends the received changes.
func recordChanges(changes *[]string) Subscriber {
	return func(e Change) {
		text := e.Type.String()
		if e.Type != Synced {
			text += " " + e.Record().Name + e.Record().ResourceVersion
		}
		if e.Initial {
			text += " initially"
		}
		*changes = append(*changes, text)
	}
}

func open(t *testing.T, ctx context.Context, c *Cache, s wire.Stream, f Subscriber) *Subscription {
	t.Helper()
	sub, err := c.Open(ctx, s, f)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func sameEvents(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events:\n%s", diff)
	}
}

var (
	a = kube.Key{Namespace: "ns", Name: "a"}
	b = kube.Key{Namespace: "ns", Name: "b"}
)

func TestSharing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		c := New(s)
		defer c.Close()
		s.put(a, small(a, "1", ""))
		var first, second, third []string
		one := open(t, t.Context(), c, webApps, recordChanges(&first))
		synctest.Wait()
		s.put(b, small(b, "2", ""))
		synctest.Wait()
		two := open(t, t.Context(), c, webApps, recordChanges(&second))
		synctest.Wait()
		if s.watchRequests() != 1 || one.Store() != two.Store() {
			t.Errorf("%d watches, stores %p and %p", s.watchRequests(), one.Store(), two.Store())
		}
		s.remove(b, small(b, "2", ""))
		synctest.Wait()
		sameEvents(t, first, "Added a101 initially", "Synced", "Added b102", "Deleted b102")
		slices.Sort(second[:2])
		sameEvents(t, second, "Added a101 initially", "Added b102 initially", "Synced", "Deleted b102")
		if v := one.Store().Version(); v != "103" {
			t.Errorf("the store is at %s", v)
		}

		one.Close()
		one.Close()
		s.put(a, small(a, "1", `"x":"y"`))
		synctest.Wait()
		if len(first) != 4 || len(second) != 5 || s.stream.Watches() != 1 {
			t.Errorf("after the first Close: %v, %v, %d watches", first, second, s.stream.Watches())
		}
		two.Close()
		if s.stream.Watches() != 0 || len(c.Stats()) != 0 {
			t.Errorf("after the last Close: %d watches, %v", s.stream.Watches(), c.Stats())
		}

		three := open(t, t.Context(), c, webApps, recordChanges(&third))
		synctest.Wait()
		sameEvents(t, third, "Added a104 initially", "Synced")
		if three.Store() == one.Store() {
			t.Error("a store of old was taken up again")
		}
	})
}

// A subscription ends with its context, also from within the subscriber.
func TestContextEndsSubscription(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		c := New(s)
		s.put(a, small(a, "1", ""))
		ctx, cancel := context.WithCancel(t.Context())
		var changes []string
		sub := open(t, ctx, c, webApps, func(e Change) {
			recordChanges(&changes)(e)
			if e.Type == Synced {
				cancel()
			}
		})
		synctest.Wait()
		if s.stream.Watches() != 0 || len(c.Stats()) != 0 {
			t.Errorf("%d watches, %v", s.stream.Watches(), c.Stats())
		}
		sub.Close()
		// This subscription's context is over from the beginning.
		open(t, ctx, c, webApps, recordChanges(&changes)).Close()
		c.Close()
		if _, err := c.Open(t.Context(), webApps, recordChanges(&changes)); !errors.Is(err, ErrClosed) {
			t.Errorf("Open after Close: %v", err)
		}
	})
}

// A subscriber can open other streams, and its own one again.
func TestOpenFromSubscriber(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		c := New(s)
		defer c.Close()
		s.put(a, small(a, "1", ""))
		var inner []string
		open(t, t.Context(), c, webApps, func(e Change) {
			if e.Type == Added {
				open(t, t.Context(), c, webApps, recordChanges(&inner))
			}
		})
		synctest.Wait()
		sameEvents(t, inner, "Added a101 initially", "Synced")
	})
}

// Close waits for a subscriber that is being called.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		c := New(s)
		defer c.Close()
		s.put(a, small(a, "1", ""))
		other := open(t, t.Context(), c, webApps, func(Change) {})
		defer other.Close()
		called, proceed, left, over := make(chan struct{}, 10), make(chan struct{}), false, false
		sub := open(t, t.Context(), c, webApps, func(Change) {
			if over {
				t.Error("the subscriber was called after Close")
			}
			called <- struct{}{}
			<-proceed
			left = true
		})
		<-called
		// Not synctest.Wait: it does not count who waits for a mutex as waiting.
		go close(proceed)
		sub.Close()
		if !left {
			t.Error("the subscriber was left alone")
		}
		over = true
		s.put(b, small(b, "2", ""))
		synctest.Wait()
	})
}

func TestRelist(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		var reported []error
		c := New(s, OnError(func(_ wire.Stream, err error) { reported = append(reported, err) }))
		defer c.Close()
		s.put(a, small(a, "1", ""))
		s.put(b, small(b, "2", ""))
		var changes []string
		sub := open(t, t.Context(), c, webApps, recordChanges(&changes))
		synctest.Wait()
		// Seen by nobody: b goes, a changes, and the watch cannot be resumed.
		s.stream.Refuse(http.StatusServiceUnavailable, "")
		s.stream.Cut()
		s.remove(b, small(b, "2", ""))
		s.put(a, small(a, "9", ""))
		s.loseHistory()
		s.stream.Allow()
		synctest.Wait()
		waitVirtually(t)
		slices.Sort(changes[5:])
		sameEvents(t, changes, "Added a101 initially", "Added b102 initially", "Synced", "Deleted a101", "Added a104", "Deleted b102")
		st := c.Stats()[0]
		if sub.Store().Version() != "105" || st.Restarts != 1 || st.Objects != 1 || !st.Synced || st.Subscribers != 1 {
			t.Errorf("at %s: %+v, %v", sub.Store().Version(), st, reported)
		}
		s.bookmark()
		synctest.Wait()
		if v := sub.Store().Version(); v != "106" {
			t.Errorf("after a bookmark the store is at %s", v)
		}
	})
}

// While a list goes on, the versions of its objects prove nothing.
func TestVersionWhileListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		c := New(s)
		defer c.Close()
		s.put(a, small(a, "1", ""))
		var seen []string
		var sub *Subscription
		ready := make(chan struct{})
		sub = open(t, t.Context(), c, webApps, func(e Change) {
			<-ready
			seen = append(seen, fmt.Sprintf("%s %q %t", e.Type, sub.Store().Version(), sub.Store().IsSynced()))
		})
		close(ready)
		synctest.Wait()
		s.put(b, small(b, "2", ""))
		synctest.Wait()
		sameEvents(t, seen, `Added "" false`, `Synced "101" true`, `Added "102" true`)
	})
}

// An object whose identity cannot be read is reported, counted, and not served in its old
// state as if nothing had been; one whose labels cannot be read is there with its content.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		var reported []error
		c := New(s, OnError(func(_ wire.Stream, err error) { reported = append(reported, err) }))
		defer c.Close()
		s.put(a, small(a, "1", ""))
		s.put(b, small(b, "2", ""))
		var changes []string
		sub := open(t, t.Context(), c, webApps, recordChanges(&changes))
		synctest.Wait()
		s.put(a, func(int) string { return `{"metadata":{"namespace":"ns","name":"a","resourceVersion":7}}` })
		s.put(b, func(v int) string {
			return fmt.Sprintf(`{"metadata":{"namespace":"ns","name":"b","uid":"2","resourceVersion":"%d","labels":{"n":7,"ok":"yes"}}}`, v)
		})
		synctest.Wait()
		var unreadable *wire.DecodeError
		if len(reported) != 2 || !errors.As(reported[0], &unreadable) || !errors.As(reported[1], &unreadable) || c.Stats()[0].DecodeFailures != 2 {
			t.Errorf("reported %v, counted %+v", reported, c.Stats())
		}
		one, ok := sub.Store().Get(a)
		if _, err := one.Bytes(); !ok || !errors.As(err, &unreadable) {
			t.Errorf("a is there: %t, and reads with %v", ok, err)
		}
		two, ok := sub.Store().Get(b)
		if !ok || !strings.Contains(bytesOf(t, two), `"n":7`) || two.Labels.Get("ok") != "yes" || two.ResourceVersion != "104" {
			t.Errorf("b is there: %t, as %+v", ok, two.Record)
		}
		s.put(a, small(a, "1", ""))
		synctest.Wait()
		if one, _ = sub.Store().Get(a); !strings.Contains(bytesOf(t, one), `"105"`) {
			t.Errorf("a did not recover")
		}
		sameEvents(t, changes[3:], "Modified b104", "Modified a105")
	})
}

func TestCoveringStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(webApps.Resource)
		c := New(s)
		defer c.Close()
		with := func(change func(*wire.Stream)) wire.Stream {
			stream := webApps
			change(&stream)
			return stream
		}
		nothing := func(Change) {}
		everywhere := webApps.Resource
		isWhole := func(s *Store) bool { return !s.hasSelector() }
		check := func(what string, want *Subscription, namespace string, form wire.Representation) {
			t.Helper()
			var store *Store
			if want != nil {
				store = want.Store()
			}
			if got := c.View().coveringStore("", everywhere, namespace, form, isWhole); got != store {
				t.Errorf("%s: %p, want %p", what, got, store)
			}
		}
		open(t, t.Context(), c, with(func(s *wire.Stream) { s.LabelSelector = "a=b" }), nothing)
		open(t, t.Context(), c, with(func(s *wire.Stream) { s.FieldSelector = "metadata.name=b" }), nothing)
		open(t, t.Context(), c, with(func(s *wire.Stream) { s.ShardSelector = "x" }), nothing)
		open(t, t.Context(), c, with(func(s *wire.Stream) { s.Cluster = "east" }), nothing)
		open(t, t.Context(), c, with(func(s *wire.Stream) { s.Resource.Version = "v2" }), nothing)
		synctest.Wait()
		check("what is narrowed", nil, "ns", wire.Full)
		one := open(t, t.Context(), c, with(func(s *wire.Stream) { s.Namespace = "ns" }), nothing)
		check("what is not synced", nil, "ns", wire.Full)
		synctest.Wait()
		check("its namespace", one, "ns", wire.Full)
		check("less than it has", one, "ns", wire.MetadataOnly)
		check("another namespace", nil, "other", wire.Full)
		check("all namespaces", nil, "", wire.Full)
		meta := open(t, t.Context(), c, with(func(s *wire.Stream) { s.Representation = wire.MetadataOnly }), nothing)
		synctest.Wait()
		check("metadata", meta, "ns", wire.MetadataOnly)
		check("metadata do not serve all", one, "ns", wire.Full)
		check("metadata do not serve all", nil, "", wire.Full)
		all := open(t, t.Context(), c, webApps, nothing)
		synctest.Wait()
		check("all", all, "", wire.Full)
		check("one of all", all, "other", wire.Full)
		all.Close()
		check("what is closed", nil, "", wire.Full)
	})
}

// The contents of Secrets are kept only if the stream asks for them, and never compressed.
func TestSecrets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(secrets.Resource)
		for i := range 200 {
			k := kube.Key{Namespace: "ns", Name: fmt.Sprint("s", i)}
			s.put(k, func(v int) string {
				return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","uid":"%d","resourceVersion":"%d"},"data":{"x":%q}}`,
					k.Name, v, v, strings.Repeat("secret", 100))
			})
		}
		nothing := func(Change) {}
		c := New(s)
		defer c.Close()
		metadata := secrets
		metadata.Representation = wire.MetadataOnly
		sub := open(t, t.Context(), c, metadata, nothing)
		synctest.Wait()
		if form := sub.Store().Stream().Representation; form != wire.MetadataOnly || s.Requests()[0].Request.Representation != wire.MetadataOnly {
			t.Errorf("asked for %q", form)
		}
		if c.View().coveringStore("", secrets.Resource, "ns", wire.Full, anyStore) != nil {
			t.Error("metadata serve a full read")
		}
		keeping := New(s)
		defer keeping.Close()
		sub = open(t, t.Context(), keeping, secrets, nothing)
		synctest.Wait()
		if form := sub.Store().Stream().Representation; form != wire.Full || keeping.View().coveringStore("", secrets.Resource, "ns", wire.Full, anyStore) == nil {
			t.Errorf("asked for %q", form)
		}
		for _, caches := range []*Cache{c, keeping} {
			st := caches.Stats()[0]
			if st.Dictionaries != 0 || st.Bytes != st.JSON || st.Objects != 200 {
				t.Errorf("%+v", st)
			}
		}
	})
}

// waitVirtually waits until a stream that has failed works again.
func waitVirtually(t *testing.T) {
	t.Helper()
	time.Sleep(10 * time.Minute) // of the bubble's own time
	synctest.Wait()
}

// Regression: after the permission to watch was revoked, and the watch had ended, every number of the stream was as
// before, so nobody could see that the program did not see changes.
func TestStatsOfAStreamThatDoesNotWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFollower(t)
		synctest.Wait()
		stats := func() Stats {
			synctest.Wait()
			return f.cache.Stats()[0]
		}
		before := stats()
		if !before.Watching || before.LastEvent.IsZero() {
			t.Errorf("the stream is %+v", before)
		}
		time.Sleep(time.Minute)
		if _, err := f.do(f.server, wire.VerbPatch, "a"); err != nil {
			t.Fatal(err)
		}
		if s := stats(); !s.LastEvent.Equal(time.Now()) {
			t.Errorf("after a change the last event was at %s, now it is %s", s.LastEvent, time.Now())
		}
		f.stream.Refuse(http.StatusForbidden, "")
		f.stream.Cut()
		time.Sleep(5 * time.Minute)
		if s := stats(); s.Watching || !s.Synced {
			t.Errorf("without a watch the stream is %+v", s)
		}
		f.stream.Allow()
		time.Sleep(10 * time.Minute)
		if s := stats(); !s.Watching {
			t.Errorf("the stream watches once more, and is %+v", s)
		}
	})
}
