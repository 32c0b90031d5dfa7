package queue

import (
	"context"
	"fmt"
	"testing"
)

func keys(n int) []Key {
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = Key{Namespace: fmt.Sprintf("team-%d", i%10), Name: fmt.Sprintf("webapp-%d", i)}
	}
	return keys
}

// BenchmarkAddGetDone passes 1,000 keys through the queue. The limit is 0.15 ms for all of them.
func BenchmarkAddGetDone(b *testing.B) {
	keys := keys(1000)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cause := Cause{Change: "modified", Kind: "Deployment", Namespace: "default", Name: "web"}

	b.Run("one by one", func(b *testing.B) {
		q := New(nil)
		b.ReportAllocs()
		for b.Loop() {
			for i := range keys {
				q.Add(Trigger{Key: keys[i], Cause: cause, Priority: High})
				item, _ := q.Get(ctx)
				q.Done(item.Key, Next{})
			}
		}
	})
	b.Run("all at once", func(b *testing.B) {
		q := New(nil)
		b.ReportAllocs()
		for b.Loop() {
			for i := range keys {
				q.Add(Trigger{Key: keys[i], Cause: cause, Priority: High})
			}
			for range keys {
				item, _ := q.Get(ctx)
				q.Done(item.Key, Next{})
			}
		}
	})
}
