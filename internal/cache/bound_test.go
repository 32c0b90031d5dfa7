package cache

import (
	"math"
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/internal/testkit/bound"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// recorded are the bounds of one object of each kind.
var recorded = map[string]struct{ content, heap, change, read, decode float64 }{
	"WebApp": {content: 272.2, heap: 532.1, change: 5, read: 3, decode: 30},
	"Pod":    {content: 594.7, heap: 955.7, change: 5, read: 3, decode: 119},
}

// An object takes no more memory than recorded, and a change, a read and the decoding of the object
// no more allocations.
func TestBoundsOfObjects(t *testing.T) {
	for _, k := range kinds {
		want, random := recorded[k.name], samples.New(1)
		changes := make([]follow.Change, 2000)
		for i := range changes {
			changes[i] = changeOf(k.object(random, i))
		}
		// Maps grow at times that differ from run to run.
		least := int64(math.MaxInt64)
		for range 5 {
			least = min(least, heapOf(k.stream, changes))
		}
		s := alone(k.stream)
		fill(s, changes)
		bound.Check(t, k.name+": bytes of the heap", float64(least)/float64(len(changes)), want.heap)
		bound.Check(t, k.name+": bytes of the content", float64(s.stats().Bytes)/float64(len(changes)), want.content)
		version := 1_000_000
		bound.CheckAllocations(t, k.name+": a change", want.change, func() {
			c := changes[version%len(changes)]
			version++
			c.Type, c.ResourceVersion = follow.ChangeModified, strconv.Itoa(version)
			s.apply(c)
		})
		var object []byte
		bound.CheckAllocations(t, k.name+": a read", want.read, func() {
			o, _ := s.store.Get(changes[7].Key)
			var err error
			if object, err = o.Bytes(); err != nil {
				t.Fatal(err)
			}
		})
		bound.CheckAllocations(t, k.name+": its decoding", want.decode, func() {
			var err error
			if k.name == "Pod" {
				_, err = pod.Decode(object)
			} else {
				_, err = app.Decode(object)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// fill applies changes and the end of a list.
func fill(s *followedStream, changes []follow.Change) {
	for _, c := range changes {
		s.apply(c)
	}
	s.apply(follow.Change{Type: follow.ChangeListed})
}

// heapOf returns the bytes that a stream takes with the objects of changes.
func heapOf(id wire.Stream, changes []follow.Change) int64 {
	before := restingHeap()
	s := alone(id)
	fill(s, changes)
	size := restingHeap() - before
	runtime.KeepAlive(s)
	return size
}

// restingHeap returns the bytes in use, without what is kept for the next change: a pool is empty
// after two garbage collections.
func restingHeap() int64 {
	runtime.GC()
	runtime.GC()
	return heap()
}

var (
	app = kube.Everywhere[samples.WebApp](nil)
	pod = kube.Everywhere[corev1.Pod](nil)
)
