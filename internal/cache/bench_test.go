package cache

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// kinds holds the kinds whose objects are measured.
var kinds = []struct {
	name   string
	stream wire.Stream
	count  int
	object func(samples.Random, int) string
}{
	{"WebApp", webApps, 10_000, samples.Random.WebApp},
	{"Pod", pods, 5_000, samples.Random.Pod},
}

// changeOf returns the change that adds an object.
func changeOf(object string) follow.Change {
	r, err := readRecord(object)
	if err != nil {
		panic(err)
	}
	return follow.Change{Type: follow.ChangeAdded, Object: []byte(object),
		Key: kube.Key{Namespace: r.Namespace, Name: r.Name}, UID: r.UID, ResourceVersion: r.ResourceVersion,
	}
}

// alone returns a stream that follows nothing.
func alone(handle wire.Stream, options ...Option) *followedStream {
	return newFollowedStream(New(nil, options...).shared, handle, func() {})
}

// heap returns the bytes in use after one garbage collection. That frees what is unreachable.
// Idle buffers, which need a second collection, are included.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processCPU returns the CPU time of the process so far, which other processes do not disturb.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHeap measures the heap that an object takes, everything included: packed object, record,
// table, indexes, dictionary. It measures the store alone, and the store with the
// stream that follows a server.
func BenchmarkHeap(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name+"/store", func(b *testing.B) {
			for range b.N {
				random := samples.New(1)
				before := heap()
				s := alone(k.stream)
				var cpu time.Duration
				for i := range k.count {
					c := changeOf(k.object(random, i))
					from := processCPU()
					s.apply(c)
					cpu += processCPU() - from
				}
				s.apply(follow.Change{Type: follow.ChangeListed})
				after := heap()
				reportHeap(b, s, after-before, k.count)
				b.ReportMetric(float64(heap()-before)/float64(k.count), "heap-idle-B/object")
				b.ReportMetric(float64(cpu.Microseconds())/float64(k.count), "cpu-µs/object")
				runtime.KeepAlive(s)
			}
		})
		b.Run(k.name+"/stream", func(b *testing.B) {
			for range b.N {
				server := newServer(k.stream.Resource)
				random := samples.New(1)
				for i := range k.count {
					o := k.object(random, i)
					r, _ := readRecord(o)
					server.put(r.Key(), func(int) string { return o })
				}
				before := heap()
				c := New(server)
				synced := make(chan struct{})
				from := processCPU()
				sub, err := c.Open(context.Background(), k.stream, func(e Change) {
					if e.Type == Synced {
						close(synced)
					}
				})
				if err != nil {
					b.Fatal(err)
				}
				<-synced
				cpu := processCPU() - from
				after := heap()
				b.ReportMetric(float64(after-before)/float64(k.count), "heap-B/object")
				b.ReportMetric(float64(heap()-before)/float64(k.count), "heap-idle-B/object")
				b.ReportMetric(float64(cpu.Microseconds())/float64(k.count), "cpu-µs/object")
				runtime.KeepAlive(sub)
				c.Close()
				runtime.KeepAlive(server)
			}
		})
	}
}

func reportHeap(b *testing.B, s *followedStream, bytes int64, count int) {
	st := s.stats()
	b.ReportMetric(float64(bytes)/float64(count), "heap-B/object")
	b.ReportMetric(float64(st.Bytes)/float64(count), "content-B/object")
	b.ReportMetric(float64(st.JSON)/float64(count), "json-B/object")
	b.ReportMetric(float64(st.Dictionaries), "dictionaries")
}

// filled returns a stream with count objects in it.
func filled(k wire.Stream, object func(samples.Random, int) string, count int) *followedStream {
	s, random := alone(k), samples.New(1)
	for i := range count {
		s.apply(changeOf(object(random, i)))
	}
	s.apply(follow.Change{Type: follow.ChangeListed})
	return s
}

// BenchmarkInsert measures the cost of applying another version of an object.
func BenchmarkInsert(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			s, random := filled(k.stream, k.object, 2000), samples.New(2)
			changes := make([]follow.Change, 1000)
			for i := range changes {
				changes[i] = changeOf(k.object(random, i))
			}
			b.ReportAllocs()
			b.ResetTimer()
			from := processCPU()
			for i := range b.N {
				c := changes[i%len(changes)]
				c.ResourceVersion = fmt.Sprint(1000 + i)
				s.apply(c)
			}
			b.ReportMetric(float64((processCPU()-from).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkGet measures a read: finding the object, and getting its bytes.
func BenchmarkGet(b *testing.B) {
	for _, k := range kinds {
		s := filled(k.stream, k.object, 2000).store
		var keys []kube.Key
		for o := range s.All(Filter{}) {
			keys = append(keys, o.Key())
		}
		b.Run(k.name+"/record", func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, ok := s.Get(keys[i%len(keys)]); !ok {
					b.Fatal("not found")
				}
			}
		})
		b.Run(k.name+"/bytes", func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				o, _ := s.Get(keys[i%len(keys)])
				if _, err := o.Bytes(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkList selects some of 10,000 objects, as records.
func BenchmarkList(b *testing.B) {
	s := filled(webApps, samples.Random.WebApp, 10_000).store
	for _, l := range []struct {
		name   string
		filter Filter
	}{
		{"all", Filter{}},
		{"namespace", Filter{Namespace: "team-search"}},
		{"labels", Filter{Labels: labels.SelectorFromSet(labels.Set{"team": "search", "tier": "front"})}},
		{"set", Filter{Labels: mustParse("team in (search, growth),tier!=front")}},
		{"none", Filter{Labels: mustParse("app.kubernetes.io/name=nothing")}},
	} {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for range b.N {
				n = 0
				for range s.All(l.filter) {
					n++
				}
			}
			b.ReportMetric(float64(n), "objects")
		})
	}
	s.IndexLabel("team")
	b.Run("labels/indexed", func(b *testing.B) {
		b.ReportAllocs()
		f := Filter{Labels: labels.SelectorFromSet(labels.Set{"team": "search", "tier": "front"})}
		for range b.N {
			for range s.All(f) {
			}
		}
	})
}

func mustParse(selector string) labels.Selector {
	s, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return s
}
