package queue

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestASteadyStateAllocatesNothing(t *testing.T) {
	q := New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	key := Key{Namespace: "default", Name: "web"}
	cause := Cause{Change: "modified", Kind: "Deployment", Namespace: "default", Name: "web"}
	for name, o := range map[string]Next{
		"done":    {},
		"requeue": {RequeueAfter: time.Hour},
		"retry":   {IsRetried: true, RetryAfter: time.Hour},
	} {
		allocs := testing.AllocsPerRun(100, func() {
			q.Add(Trigger{Key: key, Cause: cause, Priority: High})
			item, _ := q.Get(ctx)
			q.Done(item.Key, o)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func TestNothingIsKeptOfAFlood(t *testing.T) {
	q := New(nil)
	before := heapInUse()
	ctx := t.Context()
	for _, key := range keys(100_000) {
		q.Add(Trigger{Key: key})
		q.Add(Trigger{Key: key, Cause: Cause{Change: "another"}})
	}
	flood := heapInUse()
	for range 100_000 {
		item, _ := q.Get(ctx)
		q.Done(item.Key, Next{IsRetried: true, RetryAfter: time.Hour})
	}
	for _, key := range keys(100_000) {
		q.Add(Trigger{Key: key, Priority: High})
	}
	for i := range 100_000 {
		item, _ := q.Get(ctx)
		if i%10_000 == 0 { // a few stay
			q.Done(item.Key, Next{RequeueAfter: time.Hour})
		} else {
			q.Done(item.Key, Next{})
		}
	}
	s := q.Stats()
	if s.Ready != 0 || s.Running != 0 || s.Waiting != 10 || q.table.len != 10 {
		t.Fatalf("%+v with %d entries", s, q.table.len)
	}
	after := heapInUse()
	t.Logf("before %d KB, at 100,000 keys %d KB, after %d KB", before>>10, flood>>10, after>>10)
	if after > before+256<<10 {
		t.Errorf("%d KB are kept", (after-before)>>10)
	}
	runtime.KeepAlive(q)
}

// heapInUse returns the bytes of the heap that are in use.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestTheTableFindsEachKeyWhileItGrowsAndShrinks(t *testing.T) {
	table := newTable()
	keys := keys(5000)
	for i := range keys {
		table.add(table.find(&keys[i]), keys[i])
	}
	most := len(table.buckets)
	for i := range keys {
		for j := i; j < len(keys); j += 997 {
			if e := *table.find(&keys[j]); e == nil || e.key != keys[j] {
				t.Fatalf("%v is lost", keys[j])
			}
		}
		table.drop(table.find(&keys[i]))
		if *table.find(&keys[i]) != nil {
			t.Fatalf("%v is still there", keys[i])
		}
	}
	if table.len != 0 || most <= minBuckets || len(table.buckets) != minBuckets {
		t.Errorf("%d entries, %d buckets of %d", table.len, len(table.buckets), most)
	}
}
