package queue

import (
	"slices"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	failed := Next{IsRetried: true, RetryAfter: time.Minute}
	fail := func(t *testing.T, q *Queue) {
		t.Helper()
		q.Add(high(a))
		getAndDone(t, q, a, failed)
		time.Sleep(time.Second)
	}
	for name, test := range map[string]func(t *testing.T, q *Queue){
		"the key waits": func(t *testing.T, q *Queue) {
			fail(t, q)
			mustGetAfter(t, q, 59*time.Second, a)
		},
		"RequeueAfter is for reconciles that did not fail": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			getAndDone(t, q, a, Next{IsRetried: true, RetryAfter: time.Minute, RequeueAfter: time.Second})
			mustGetAfter(t, q, time.Minute, a)
		},
		"a fresh trigger ends the wait": func(t *testing.T, q *Queue) {
			fail(t, q)
			q.Add(high(a))
			mustGet(t, q, a)
		},
		// A resync ended every back-off.
		"a resync changes nothing but is recorded": func(t *testing.T, q *Queue) {
			fail(t, q)
			q.Add(low(a))
			item := mustGetAfter(t, q, 59*time.Second, a)
			if got := item.Causes.String(); got != "resync, retry" {
				t.Errorf("causes %q", got)
			}
		},
		"a resync during the failing reconcile changes nothing": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(low(a))
			q.Done(a, failed)
			mustGetAfter(t, q, time.Minute, a)
		},
		"a possible echo ends the wait once": func(t *testing.T, q *Queue) {
			fail(t, q)
			possible := high(a)
			possible.Echo = PossibleEcho
			q.Add(possible)
			getAndDone(t, q, a, failed)
			q.Add(possible)
			mustGetAfter(t, q, time.Minute, a)
			q.Done(a, Next{})
			fail(t, q) // after a success the doubt counts again
			q.Add(possible)
			mustGet(t, q, a)
		},
		"a possible echo during the failing reconcile ends the wait once": func(t *testing.T, q *Queue) {
			possible := high(a)
			possible.Echo = PossibleEcho
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(possible)
			q.Done(a, failed)
			mustGet(t, q, a)
			q.Add(possible)
			q.Done(a, failed)
			mustGetAfter(t, q, time.Minute, a)
		},
		"a fresh trigger during the failing reconcile": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(high(a))
			q.Done(a, failed)
			mustGet(t, q, a)
		},
		"a fresh trigger for later, but before the retry": func(t *testing.T, q *Queue) {
			fail(t, q)
			q.Add(in(time.Second, high(a)))
			q.Add(echo(a))
			mustGetAfter(t, q, time.Second, a)
		},
		"an echo during the wait changes nothing but is a cause": func(t *testing.T, q *Queue) {
			fail(t, q)
			q.Add(echo(a))
			item := mustGetAfter(t, q, 59*time.Second, a)
			if got := item.Causes.String(); got != "echo, retry" {
				t.Errorf("causes %q", got)
			}
		},
		"an echo during the failing reconcile changes nothing but is a cause": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(echo(a))
			q.Done(a, failed)
			item := mustGetAfter(t, q, time.Minute, a)
			if got := item.Causes.String(); got != "echo, retry" {
				t.Errorf("causes %q", got)
			}
		},
		"a fresh trigger beside the echo": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			mustGet(t, q, a)
			q.Add(echo(a))
			q.Add(high(a))
			q.Done(a, failed)
			mustGet(t, q, a)
		},
		"without a wait": func(t *testing.T, q *Queue) {
			q.Add(high(a))
			getAndDone(t, q, a, Next{IsRetried: true})
			mustGet(t, q, a)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				test(t, q)
				q.Done(a, Next{})
				requireIdle(t, q)
			})
		})
	}
}

func TestALowTriggerNeitherDelaysNorHastensTheRetry(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(high(a))
		getAndDone(t, q, a, Next{IsRetried: true, RetryAfter: time.Second})
		for range 10 {
			q.Add(low(Key{Name: time.Now().String()})) // the flood
			time.Sleep(time.Millisecond)
		}
		q.Add(low(a))
		time.Sleep(time.Second)
		item := mustGet(t, q, a)
		if item.Waited != 10*time.Millisecond {
			t.Errorf("waited %v, want it from the end of the back-off on", item.Waited)
		}
	})
}

func TestAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		var attempts []int
		q.Add(high(a))
		for _, o := range []Next{
			{IsRetried: true, RetryAfter: 1}, {IsRetried: true, RetryAfter: 2}, {RequeueAfter: 3},
			{IsRetried: true}, {RequeueAfter: 1}, {},
		} {
			item, _ := q.Get(t.Context())
			attempts = append(attempts, item.FailureCount)
			q.Done(a, o)
		}
		if want := []int{0, 1, 2, 0, 1, 0}; !slices.Equal(attempts, want) {
			t.Errorf("attempts %v, want %v", attempts, want)
		}
		if s := q.Stats(); s.Retries != 3 || s.Adds != 1 {
			t.Errorf("%+v", s)
		}
		requireIdle(t, q)
	})
}

func TestOutcomeThatAsksForNothingDropsTheKeyUnlessATriggerCame(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(high(a))
		getAndDone(t, q, a, Next{IsRetried: true})
		getAndDone(t, q, a, Next{})
		requireIdle(t, q)
		if q.table.len != 0 {
			t.Error("the key is still known")
		}
		q.Add(high(a))
		getAndDone(t, q, a, Next{IsRetried: true})
		mustGet(t, q, a)
		q.Add(echo(a))
		q.Done(a, Next{})
		if item := getAndDone(t, q, a, Next{}); item.FailureCount != 0 {
			t.Errorf("attempt %d of what may be another object", item.FailureCount)
		}
		requireIdle(t, q)
	})
}
