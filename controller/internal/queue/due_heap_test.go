package queue

import (
	"fmt"
	"testing"
	"time"
)

// A trigger for later was lost when another reconcile came before its time.
func TestADelayedTriggerOutlivesEarlierReconciles(t *testing.T) {
	for name, o := range map[string]Next{
		"success": {}, "requeue": {RequeueAfter: 10 * time.Minute}, "failure": {IsRetried: true, RetryAfter: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, q *Queue) {
				q.Add(in(time.Hour, high(a)))
				q.Add(in(2*time.Hour, high(a)))
				q.Add(high(a))
				getAndDone(t, q, a, o)
				elapsed := time.Duration(0)
				if o.RequeueAfter > 0 || o.RetryAfter > 0 {
					mustGetAfter(t, q, 10*time.Minute, a)
					elapsed = 10 * time.Minute
					q.Add(high(a))
					q.Done(a, Next{})
					getAndDone(t, q, a, Next{})
				}
				mustGetAfter(t, q, time.Hour-elapsed, a)
				q.Done(a, Next{})
				mustGetAfter(t, q, time.Hour, a)
				q.Done(a, Next{})
				requireIdle(t, q)
			})
		})
	}
}

func TestADelayedTriggerDuringAReconcileIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		q.Add(high(a))
		mustGet(t, q, a)
		later := in(time.Hour, high(a))
		later.Cause = Cause{Change: "expiry"}
		q.Add(later)
		q.Add(high(a))
		q.Done(a, Next{})
		if item := mustGet(t, q, a); item.Causes.String() != "fresh" {
			t.Errorf("causes %q", item.Causes.String())
		}
		q.Done(a, Next{})
		if item := mustGetAfter(t, q, time.Hour, a); item.Causes.String() != "expiry" {
			t.Errorf("causes %q", item.Causes.String())
		}
		q.Done(a, Next{})
		requireIdle(t, q)
	})
}

// A source that emits many delayed triggers for one key takes little memory, and the last time is
// never forgotten.
func TestManyDelayedTriggersOfOneKey(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		for i := range 1000 {
			q.Add(in(time.Duration(i+1)*time.Minute, high(a)))
		}
		if n := len((*q.table.find(&a)).delayedTriggers); n > maxDelayedTriggers {
			t.Errorf("%d delayed triggers are kept", n)
		}
		start, n := time.Now(), 0
		for (*q.table.find(&a)) != nil {
			item, _ := q.Get(t.Context())
			q.Done(item.Key, Next{})
			n++
		}
		if d := time.Since(start); n > maxDelayedTriggers+1 || d != 1000*time.Minute {
			t.Errorf("%d reconciles, the last after %s", n, d)
		}
	})
}

// Due requeues were as urgent as a new object. The new object waited behind a thousand requeues.
func TestFreshOvertakesDueRequeues(t *testing.T) {
	inBubble(t, func(t *testing.T, q *Queue) {
		for i := range 100 {
			q.Add(in(time.Second, high(Key{Name: fmt.Sprint("due", i)})))
		}
		time.Sleep(time.Minute)
		fresh := 0
		for i := range 30 {
			q.Add(high(Key{Name: fmt.Sprint("fresh", i)}))
			item, _ := q.Get(t.Context())
			if item.Key.Name[0] == 'f' {
				fresh++
			}
			q.Done(item.Key, Next{})
		}
		if fresh != 20 {
			t.Errorf("%d of 30 reconciles were of fresh changes, want all but the share of what is due", fresh)
		}
	})
}
