package queue

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	a = Key{Namespace: "default", Name: "a"}
	b = Key{Namespace: "default", Name: "b"}
	c = Key{Namespace: "default", Name: "c"}
)

func high(key Key) Trigger { return Trigger{Key: key, Priority: High, Cause: Cause{Change: "fresh"}} }
func low(key Key) Trigger  { return Trigger{Key: key, Priority: Low, Cause: Cause{Change: "resync"}} }
func echo(key Key) Trigger {
	return Trigger{Key: key, Priority: High, Cause: Cause{Change: "echo"}, Echo: CertainEcho}
}

func in(d time.Duration, t Trigger) Trigger {
	t.NotBefore = time.Now().Add(d)
	return t
}

// inBubble runs f with virtual time, which passes only while everybody waits.
func inBubble(t *testing.T, f func(t *testing.T, q *Queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		q := New(nil)
		defer q.Shutdown()
		f(t, q)
	})
}

// mustGetAfter gets a key, and fails t unless the key becomes ready after the wait, and not before.
func mustGetAfter(t *testing.T, q *Queue, wait time.Duration, key Key) Work {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
	defer cancel()
	start := time.Now()
	item, ok := q.Get(ctx)
	if !ok || item.Key != key || time.Since(start) != wait {
		t.Fatalf("got %v (%v) after %v, want %v after %v", item.Key, ok, time.Since(start), key, wait)
	}
	return item
}

// mustGet gets key, which must be ready.
func mustGet(t *testing.T, q *Queue, key Key) Work {
	t.Helper()
	return mustGetAfter(t, q, 0, key)
}

// getAndDone gets key, which must be ready, and ends its work with o.
func getAndDone(t *testing.T, q *Queue, key Key, o Next) Work {
	t.Helper()
	item := mustGet(t, q, key)
	q.Done(key, o)
	return item
}

// requireIdle checks that there is nothing to do, now and later.
func requireIdle(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 1000*time.Hour)
	defer cancel()
	if item, ok := q.Get(ctx); ok {
		t.Fatalf("got %v (%v), want nothing", item.Key, item.Causes)
	}
}

func TestOneWorkerPerKey(t *testing.T) {
	for name, trigger := range map[string]Trigger{"fresh": high(a), "low": low(a), "echo": echo(a)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				q.Add(high(a))
				mustGet(t, q, a)
				for range 3 {
					q.Add(trigger)
				}
				requireIdle(t, q)
				q.Done(a, Next{})
				getAndDone(t, q, a, Next{})
				requireIdle(t, q)
			})
		})
	}
}

func TestKeysDifferByClusterAndNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		keys := []Key{
			{Name: "x"}, {Namespace: "n", Name: "x"}, {Cluster: "c", Namespace: "n", Name: "x"}, {Cluster: "c", Name: "x"}, {Cluster: "n", Name: "x"},
		}
		for _, k := range keys {
			q.Add(high(k))
		}
		for _, k := range keys {
			mustGet(t, q, k)
		}
	})
}

func TestTriggersDuringWorkCauseExactlyOneMoreRound(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(high(a))
		first := mustGet(t, q, a)
		q.Add(high(a))
		q.Add(low(a))
		time.Sleep(time.Second)
		q.Done(a, Next{})
		second := mustGet(t, q, a)
		if first.Causes.Count() != 1 || second.Causes.Count() != 2 || second.Waited != 0 {
			t.Errorf("causes %v, then %v after %v", first.Causes, second.Causes, second.Waited)
		}
		q.Done(a, Next{})
		requireIdle(t, q)
	})
}

// Keys of low priority wait while they are held, and all others go on. A worker that has waited takes them afterwards.
func TestLowIsHeld(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		var isReleased atomic.Bool
		q.HoldLow(func() bool { return !isReleased.Load() })
		q.Add(low(a))
		q.Add(low(b))
		requireIdle(t, q)
		q.Add(high(b))
		getAndDone(t, q, b, Next{RequeueAfter: time.Minute})
		mustGetAfter(t, q, time.Minute, b)
		for range 10 { // the share of low keys does not count
			q.Add(high(c))
			getAndDone(t, q, c, Next{})
		}
		go func() {
			time.Sleep(time.Hour)
			isReleased.Store(true)
			q.ReleaseLow()
		}()
		mustGetAfter(t, q, time.Hour, a)
	})
}

// Regression: a key of a Low trigger that was held woke no waiting worker when another trigger, or its requeue, asked for it.
func TestHeldLowKeyWakesAWaitingWorker(t *testing.T) {
	for name, add := range map[string]func(*Queue){
		"high":  func(q *Queue) { q.Add(high(a)) },
		"later": func(q *Queue) { q.Add(in(time.Minute, high(a))) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				q.HoldLow(func() bool { return true })
				q.Add(low(a))
				got := make(chan Key, 1)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					if item, ok := q.Get(ctx); ok {
						got <- item.Key
					}
				}()
				synctest.Wait() // the worker has found no key
				add(q)
				select {
				case key := <-got:
					if key != a {
						t.Errorf("the worker has got %v", key)
					}
				case <-time.After(time.Hour):
					t.Error("no worker was woken")
				}
			})
		})
	}
}

func TestDoneOfAKeyThatIsNotRunningDoesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Done(a, Next{RequeueAfter: time.Second})
		requireIdle(t, q)
		q.Add(high(a))
		q.Done(a, Next{})
		getAndDone(t, q, a, Next{RequeueAfter: time.Minute})
		q.Done(a, Next{})
		mustGetAfter(t, q, time.Minute, a)
	})
}

func TestEarliestWins(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, q *Queue){
		"a trigger replaces a later requeue": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			getAndDone(t, q, a, Next{RequeueAfter: time.Hour})
			q.Add(high(a))
			getAndDone(t, q, a, Next{})
		},
		"a later trigger does not postpone an earlier one": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			q.Add(in(time.Hour, high(a)))
			getAndDone(t, q, a, Next{})
			mustGetAfter(t, q, time.Hour, a)
			q.Done(a, Next{})
		},
		"of several times each": func(t *testing.T, q *Queue) {
			q.Add(in(2*time.Hour, high(a)))
			q.Add(in(time.Hour, high(a)))
			q.Add(in(3*time.Hour, high(a)))
			for range 3 {
				mustGetAfter(t, q, time.Hour, a)
				q.Done(a, Next{})
			}
		},
		"a trigger during the work wins over the requeue": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(high(a))
			q.Done(a, Next{RequeueAfter: time.Hour})
			getAndDone(t, q, a, Next{})
		},
		"an echo during the work wins over the requeue": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(echo(a))
			q.Done(a, Next{RequeueAfter: time.Hour})
			getAndDone(t, q, a, Next{})
		},
		"a later trigger during the work, and an earlier requeue": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(in(time.Hour, high(a)))
			q.Done(a, Next{RequeueAfter: time.Minute})
			mustGetAfter(t, q, time.Minute, a)
			q.Done(a, Next{})
			mustGetAfter(t, q, 59*time.Minute, a)
			q.Done(a, Next{})
		},
		"a later trigger during the work is kept": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(in(time.Hour, high(a)))
			q.Done(a, Next{})
			mustGetAfter(t, q, time.Hour, a)
			q.Done(a, Next{})
		},
		"a time that is over is now": func(t *testing.T, q *Queue) {
			q.Add(in(-time.Hour, high(a)))
			getAndDone(t, q, a, Next{})
		},
		"a time without a monotonic reading": func(t *testing.T, q *Queue) {
			late := in(time.Hour, high(a))
			late.NotBefore = late.NotBefore.Round(0).UTC()
			q.Add(late)
			mustGetAfter(t, q, time.Hour, a)
			q.Done(a, Next{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				test(t, q)
				requireIdle(t, q)
			})
		})
	}
}

func TestATimeTooFarAwayIsNotForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		far := high(a)
		far.NotBefore = time.Now().AddDate(5000, 0, 0)
		q.Add(far)
		if s := q.Stats(); s.Waiting != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestHighOvertakesLowWhichKeepsAShare(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		name := func(prefix string, i int) Key { return Key{Name: prefix + string(rune('0'+i))} }
		for i := range 3 {
			q.Add(low(name("l", i)))
		}
		for i := range 10 {
			q.Add(high(name("h", i)))
		}
		var got []string
		for range 13 {
			item, _ := q.Get(t.Context())
			got = append(got, item.Key.Name)
		}
		want := "h0 h1 h2 h3 l0 h4 h5 h6 h7 l1 h8 h9 l2"
		if s := strings.Join(got, " "); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
	})
}

// Low work once took reconciles of the share of Due: four in a row were handed out while Due had work.
func TestDueKeepsItsShareBesideLow(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		name := func(prefix string, i int) Key { return Key{Name: prefix + string(rune('a'+i))} }
		for i := range 6 {
			q.Add(high(name("due", i)))
			getAndDone(t, q, name("due", i), Next{RequeueAfter: time.Second})
		}
		time.Sleep(2 * time.Second)
		for i := range 10 {
			q.Add(high(name("high", i)))
		}
		for i := range 4 {
			q.Add(low(name("low", i)))
		}
		var got []string
		for range 15 {
			item, _ := q.Get(t.Context())
			got = append(got, strings.ToUpper(item.Key.Name[:1]))
		}
		if s := strings.Join(got, " "); s != "H H D H L H D H H L D H H D L" {
			t.Errorf("the order is %s", s)
		}
	})
}

func TestALowKeyIsPromotedByAHighTrigger(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(low(a))
		q.Add(low(b))
		q.Add(high(c))
		time.Sleep(time.Second)
		q.Add(high(b))
		q.Add(low(c)) // and High stays High
		mustGet(t, q, c)
		if item := mustGet(t, q, b); item.Waited != time.Second || item.Causes.Count() != 2 {
			t.Errorf("waited %v for %v", item.Waited, item.Causes)
		}
		mustGet(t, q, a)
	})
}

func TestWhatComesDueIsBeforeLowAndFirstComeFirstServed(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		later := Key{Name: "later"}
		q.Add(high(b))
		getAndDone(t, q, b, Next{RequeueAfter: 2 * time.Second})
		q.Add(high(c))
		getAndDone(t, q, c, Next{RequeueAfter: 2 * time.Second})
		q.Add(in(time.Second, low(a)))
		q.Add(low(later))
		time.Sleep(3 * time.Second)
		q.Add(high(Key{Name: "fresh"}))
		mustGet(t, q, Key{Name: "fresh"})
		if item := mustGet(t, q, a); item.Waited != 2*time.Second {
			t.Errorf("waited %v, want it from the due time on", item.Waited)
		}
		if item := mustGet(t, q, b); item.Waited != time.Second || item.Causes.String() != "requeue" {
			t.Errorf("waited %v for %v", item.Waited, item.Causes)
		}
		mustGet(t, q, c)
		mustGet(t, q, later)
	})
}

func TestGetEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok := q.Get(ctx); ok {
			t.Error("got something")
		}
		q.Add(high(a))
		if _, ok := q.Get(ctx); ok {
			t.Error("got something for a context that has ended")
		}
		mustGet(t, q, a)
	})
}

func TestShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(high(a))
		mustGet(t, q, a)
		blocked := make(chan bool, 2)
		for range 2 {
			go func() {
				_, ok := q.Get(t.Context())
				blocked <- ok
			}()
		}
		q.Add(in(time.Second, high(c)))
		synctest.Wait()
		q.Shutdown()
		if first, second := <-blocked, <-blocked; first || second {
			t.Error("a worker got something")
		}
		q.Add(high(b))
		q.Add(high(a))
		if s := q.Stats(); s.Running != 1 || s.Ready != 0 || s.Adds != 2 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Hour)
		q.Done(a, Next{RequeueAfter: time.Second})
		if _, ok := q.Get(t.Context()); ok {
			t.Error("new work after shutdown")
		}
		if s := q.Stats(); s.Running != 0 {
			t.Errorf("%+v", s)
		}
		q.Shutdown() // again
	})
}

func TestStats(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(low(a))
		time.Sleep(time.Second)
		q.Add(high(b))
		q.Add(in(time.Hour, high(c)))
		time.Sleep(time.Second)
		want := Stats{Ready: 2, Waiting: 1, OldestReady: 2 * time.Second, Adds: 3}
		if s := q.Stats(); s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
		q.Add(high(a)) // behind b, but older
		mustGet(t, q, b)
		want = Stats{Ready: 1, Waiting: 1, Running: 1, OldestReady: 2 * time.Second, Adds: 4}
		if s := q.Stats(); s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
	})
}

func TestCauses(t *testing.T) {
	var c Causes
	if c.String() != "" || c.Count() != 0 {
		t.Errorf("the zero value is %q", c)
	}
	web := Cause{Change: "modified", Kind: "Deployment", Namespace: "default", Name: "web"}
	c.add(web)
	if got, want := c.String(), "Deployment default/web modified"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.add(web)
	c.add(Cause{Change: "added", Kind: "Node", Name: "n1"})
	c.add(Cause{Change: "timer"})
	c.add(Cause{Change: "requeue"})
	if got, want := c.String(), "Deployment default/web modified, Node n1 added, timer (5 in all)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for got := range c.All() {
		if got != web {
			t.Errorf("first is %v", got)
		}
		break
	}
}

// The key of an object that is gone leaves the queue, unless a trigger asks for the key itself, whatever the
// object, or a worker has the key.
func TestDropGone(t *testing.T) {
	t.Parallel()
	key := Key{Namespace: "default", Name: "web"}
	ofObject := Trigger{Key: key, Priority: High, NeedsObject: true}
	for name, test := range map[string]struct {
		triggers  []Trigger
		isRunning bool
		want      Stats
	}{
		"only changes":         {triggers: []Trigger{ofObject, ofObject}},
		"a trigger for itself": {triggers: []Trigger{ofObject, high(key)}, want: Stats{Ready: 1}},
		"first for itself":     {triggers: []Trigger{low(key), ofObject}, want: Stats{Ready: 1}},
		"running":              {triggers: []Trigger{ofObject}, isRunning: true, want: Stats{Running: 1}},
		"nothing":              {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := New(nil)
			defer q.Shutdown()
			for _, trigger := range test.triggers {
				q.Add(trigger)
			}
			if test.isRunning {
				q.Get(t.Context())
			}
			q.DropGone(key)
			got := q.Stats()
			if got.Ready != test.want.Ready || got.Running != test.want.Running || got.Waiting != 0 {
				t.Errorf("the queue is %+v", got)
			}
		})
	}
}
