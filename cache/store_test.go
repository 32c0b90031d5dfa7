package cache

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/watch"
)

// insert puts an object into a stream that follows nothing.
func insert(s *stream, object string) Record {
	c := changeOf(object)
	s.apply(c)
	s.reportFailed()
	r, _ := recordOf([]byte(object))
	return r
}

func drop(s *stream, k kube.Key) {
	s.apply(watch.Change{Type: watch.ChangeDeleted, Key: k})
}

// A store with any history holds what a map would, and selects what a loop over it would.
func TestStoreIsAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := newSamples(seed)
			s := alone(pods)
			if seed%2 == 0 {
				s.store.IndexLabel("team")
			}
			byNode := kube.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName, "all", "all"} })
			want := make(map[kube.Key]string)
			for i := range 900 {
				switch {
				case i == 300:
					if err := s.store.Index(byNode); err != nil {
						t.Fatal(err)
					}
				case i == 500:
					s.store.IndexLabel("app")
				}
				if random.IntN(3) == 0 && len(want) > 0 {
					k := slices.SortedFunc(maps.Keys(want), compareKeys)[random.IntN(len(want))]
					drop(s, k)
					delete(want, k)
					continue
				}
				o := random.pod(random.IntN(120))
				if random.IntN(2) == 0 && len(want) > 0 { // a change
					k := slices.SortedFunc(maps.Keys(want), compareKeys)[random.IntN(len(want))]
					r, _ := recordOf([]byte(want[k]))
					version := fmt.Sprintf(`"resourceVersion":"%d"`, 1_000_000+i)
					o = strings.Replace(want[k], fmt.Sprintf(`"resourceVersion":%q`, r.ResourceVersion), version, 1)
					o = strings.Replace(o, `"team":"`+r.Labels.Get("team"), `"team":"`+random.team(), 1)
				}
				want[insert(s, o).Key()] = o
			}
			got := contents(t, s.store.All(Filter{}))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
			if s.store.Len() != len(want) {
				t.Errorf("Len is %d of %d", s.store.Len(), len(want))
			}
			looked := 0
			for k, o := range want {
				if looked++; looked > 15 {
					break
				}
				if have, ok := s.store.Get(k); !ok || bytesOf(t, have) != o {
					t.Errorf("%s: %t", k, ok)
				}
				r, _ := recordOf([]byte(o))
				for _, f := range []Filter{
					{Namespace: k.Namespace}, {Owner: r.Owners[0].UID}, {Index: byNode, Value: nodeOf(o)},
					{Labels: mustParse("team=" + r.Labels.Get("team"))}, {Labels: mustParse("team=" + r.Labels.Get("team") + ",app!=x"), Namespace: k.Namespace},
					{Labels: mustParse("team in (search,growth)"), Index: byNode, Value: "all"}, {Labels: mustParse("!team")},
				} {
					compareSelection(t, want, s.store, f)
				}
			}
			compareSelection(t, want, s.store, Filter{Namespace: "nowhere"})
			compareSelection(t, want, s.store, Filter{Owner: "nobody"})
			for k := range want {
				drop(s, k)
			}
			if st := s.stats(); st.Objects != 0 || st.Bytes != 0 || st.JSON != 0 || st.Dictionary != 0 {
				t.Errorf("an empty store has %+v", st)
			}
		})
	}
}

func compareKeys(a, b kube.Key) int { return strings.Compare(a.String(), b.String()) }

func nodeOf(pod string) string {
	_, rest, _ := strings.Cut(pod, `"nodeName":"`)
	node, _, _ := strings.Cut(rest, `"`)
	return node
}

func contents(t *testing.T, all func(func(Object) bool)) map[kube.Key]string {
	t.Helper()
	got := make(map[kube.Key]string)
	for o := range all {
		if _, twice := got[o.Key()]; twice {
			t.Errorf("%s comes twice", o.Key())
		}
		got[o.Key()] = bytesOf(t, o)
	}
	return got
}

func compareSelection(t *testing.T, objects map[kube.Key]string, s *Store, f Filter) {
	t.Helper()
	var want, got []kube.Key
	for k, o := range objects {
		r, _ := recordOf([]byte(o))
		if (f.Namespace == "" || k.Namespace == f.Namespace) && (f.Labels == nil || f.Labels.Matches(r.Labels)) &&
			(f.Owner == "" || slices.ContainsFunc(r.Owners, func(o Owner) bool { return o.UID == f.Owner })) &&
			(f.Index == nil || f.Value == "all" || nodeOf(o) == f.Value) {
			want = append(want, k)
		}
	}
	for o := range s.All(f) {
		got = append(got, o.Key())
	}
	slices.SortFunc(want, compareKeys)
	slices.SortFunc(got, compareKeys)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%+v:\n%s", f, diff)
	}
}

// A selection decompresses nothing: the contents are broken here, and reading one fails.
func TestSelectionDecodesNothing(t *testing.T) {
	t.Parallel()
	s := filled(webApps, samples.webApp, 500)
	for slot, e := range s.store.slots {
		if e.codec == nil {
			t.Fatalf("slot %d is not compressed", slot)
		}
		broken := *e
		broken.data = e.data[:e.values] + "broken"
		s.writer.replace(uint32(slot), &broken)
	}
	var last Object
	n := 0
	for _, f := range []Filter{{}, {Namespace: "team-search"}, {Labels: mustParse("team=search")}, {Owner: "x"}} {
		for o := range s.store.All(f) {
			last = o
			n++
		}
	}
	s.store.IndexLabel("team")
	for range s.store.All(Filter{Labels: mustParse("team=growth")}) {
		n++
	}
	if n < 500 {
		t.Errorf("%d objects", n)
	}
	if _, err := last.Bytes(); err == nil {
		t.Error("what is broken was read")
	}
}

// What a caller does to the bytes that it got concerns nobody else.
func TestBytesArePrivate(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 300} { // as it was sent, and compressed
		s := filled(webApps, samples.webApp, count)
		for o := range s.store.All(Filter{}) {
			before := bytesOf(t, o)
			b, _ := o.Bytes()
			clear(b[:cap(b)])
			if bytesOf(t, o) != before {
				t.Fatal("the cache was changed")
			}
			prefixed, err := o.AppendBytes([]byte("x"))
			if err != nil || string(prefixed) != "x"+before {
				t.Fatalf("AppendBytes: %v", err)
			}
		}
	}
	if _, err := (Object{}).Bytes(); err == nil {
		t.Error("no object has bytes")
	}
}

// An object that was read stays as it was, and so does a list.
func TestObjectsStay(t *testing.T) {
	t.Parallel()
	s := filled(webApps, samples.webApp, 300)
	before := make(map[kube.Key]Object)
	want := make(map[kube.Key]string)
	for o := range s.store.All(Filter{}) {
		before[o.Key()], want[o.Key()] = o, bytesOf(t, o)
	}
	n := 0
	for o := range s.store.All(Filter{}) {
		if n++; n == 1 {
			for k := range want {
				drop(s, k)
			}
		}
		if got := bytesOf(t, o); got != want[o.Key()] {
			t.Fatalf("%s changed", o.Key())
		}
	}
	if n != 300 || s.store.Len() != 0 {
		t.Errorf("%d were shown, and %d are there", n, s.store.Len())
	}
	for k, o := range before {
		if bytesOf(t, o) != want[k] {
			t.Errorf("%s changed", k)
		}
	}
}

// Readers see whole objects and consistent lists while everything changes.
func TestReadersAndTheWriter(t *testing.T) {
	t.Parallel()
	s := alone(webApps)
	var done atomic.Bool
	var readers sync.WaitGroup
	var indexes []*kube.Index
	for i := range 5 {
		indexes = append(indexes, kube.NewIndex(fmt.Sprint(i), func(w *webApp) []string { return []string{w.Namespace} }))
	}
	for range 4 {
		readers.Go(func() {
			for !done.Load() {
				seen := make(map[kube.Key]bool)
				for o := range s.store.All(Filter{Labels: mustParse("tier=front")}) {
					if seen[o.Key()] || o.Labels.Get("tier") != "front" {
						t.Errorf("%s twice, or wrong", o.Key())
					}
					seen[o.Key()] = true
					b, err := o.Bytes()
					if err != nil {
						t.Error(err)
						return
					}
					if r, err := recordOf(b); err != nil || r.ResourceVersion != o.ResourceVersion || r.UID != o.UID {
						t.Errorf("the record is at %s, the content at %s, %v", o.ResourceVersion, r.ResourceVersion, err)
					}
					s.store.Get(o.Key())
				}
				s.stats()
				s.store.Version()
			}
		})
	}
	readers.Go(func() {
		for i, x := range indexes {
			s.store.IndexLabel([]string{"team", "tier", "x"}[i%3])
			if err := s.store.Index(x); err != nil {
				t.Error(err)
			}
		}
	})
	random := newSamples(5)
	for i := range 700 {
		o := random.webApp(i % 200)
		o = strings.Replace(o, `"resourceVersion":"`, fmt.Sprintf(`"resourceVersion":"%d`, i+1), 1)
		insert(s, o)
		if i%3 == 0 {
			for o := range s.store.All(Filter{}) {
				drop(s, o.Key())
				break
			}
		}
	}
	done.Store(true)
	readers.Wait()
	for i, x := range indexes {
		n := 0
		for range s.store.All(Filter{Index: x, Value: "team-search"}) {
			n++
		}
		if want := len(slices.Collect(s.store.All(Filter{Namespace: "team-search"}))); n != want {
			t.Errorf("index %d has %d of %d", i, n, want)
		}
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	var reports []error
	s := alone(webApps, OnError(func(_ kube.Stream, err error) { reports = append(reports, err) }))
	insert(s, small(kube.Key{Namespace: "ns", Name: "a"}, "1", "")(1))
	byName := kube.NewIndex("name", func(w *webApp) []string {
		if w.Name == "bad" {
			panic("oh no")
		}
		return []string{w.Name}
	})
	for range 2 { // to repeat it does nothing
		if err := s.store.Index(byName); err != nil {
			t.Fatal(err)
		}
	}
	byPod := kube.NewIndex("pod", func(*corev1.Pod) []string { return nil })
	if err := s.store.Index(byPod); err == nil || !strings.Contains(err.Error(), "of pods (v1), not of webapps.example.com") {
		t.Errorf("an index of pods: %v", err)
	}
	insert(s, small(kube.Key{Namespace: "ns", Name: "bad"}, "2", "")(2))
	if s.store.Len() != 2 || len(reports) != 1 || !strings.Contains(reports[0].Error(), "oh no") {
		t.Errorf("%d objects, reports: %v", s.store.Len(), reports)
	}
	// The object for which the function panicked may have any value.
	if got := len(slices.Collect(s.store.All(Filter{Index: byName, Value: "a"}))); got != 2 {
		t.Errorf("%d objects under a", got)
	}
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "Store.Index") {
			t.Errorf("panic: %s", p)
		}
	}()
	for range s.store.All(Filter{Index: byPod}) {
		t.Error("an object of no index")
	}
}

// Owners that are no uuids, and share a hash with nobody, are found too.
func TestOddOwners(t *testing.T) {
	t.Parallel()
	s := alone(webApps)
	for i := range 10 {
		insert(s, fmt.Sprintf(`{"metadata":{"name":"o%d","uid":"u%d","resourceVersion":"%d","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"a","uid":"odd%d"},{"apiVersion":"g/v1","kind":"L","name":"b","uid":"both","controller":true}]}}`, i, i, i+1, i%2))
	}
	for owner, want := range map[types.UID]int{"odd0": 5, "odd1": 5, "both": 10, "": 10, "odd": 0} {
		if got := len(slices.Collect(s.store.All(Filter{Owner: owner}))); got != want {
			t.Errorf("%d objects of %q, want %d", got, owner, want)
		}
	}
}
