package database

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

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A database with any history holds what a map would, and selects what a loop over it would.
func TestStoreIsAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := samples.New(seed)
			s := newTestStore(Options{})
			if seed%2 == 0 {
				s.IndexLabel("team")
			}
			byNode := kube.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName, "all", "all"} })
			want := make(map[kube.Key]string)
			for i := range 900 {
				switch {
				case i == 300:
					s.Index(byNode)
				case i == 500:
					s.IndexLabel("app")
				}
				if random.IntN(3) == 0 && len(want) > 0 {
					k := slices.SortedFunc(maps.Keys(want), compareKeys)[random.IntN(len(want))]
					s.writer.Remove(k)
					delete(want, k)
					continue
				}
				o := random.Pod(random.IntN(120))
				if random.IntN(2) == 0 && len(want) > 0 { // a change
					k := slices.SortedFunc(maps.Keys(want), compareKeys)[random.IntN(len(want))]
					was := mustRead(t, want[k])
					version := fmt.Sprintf(`"resourceVersion":"%d"`, 1_000_000+i)
					o = strings.Replace(want[k], fmt.Sprintf(`"resourceVersion":%q`, was.ResourceVersion()), version, 1)
					o = strings.Replace(o, `"team":"`+was.Labels().Get("team"), `"team":"`+random.Team(), 1)
				}
				want[s.insert(o).Key()] = o
			}
			if diff := cmp.Diff(want, s.contents(t, Filter{})); diff != "" {
				t.Fatal(diff)
			}
			if s.Len() != len(want) {
				t.Errorf("Len is %d of %d", s.Len(), len(want))
			}
			looked := 0
			for k, o := range want {
				if looked++; looked > 15 {
					break
				}
				if have := s.Get(k); have == nil || jsonOf(t, have) != o {
					t.Errorf("%s: %v", k, have)
				}
				r := mustRead(t, o)
				for _, f := range []Filter{
					{Namespace: k.Namespace}, {Owner: r.Owners()[0].UID}, {Index: byNode, Value: nodeOf(o)},
					{Labels: mustParse("team=" + r.Labels().Get("team"))}, {Labels: mustParse("team=" + r.Labels().Get("team") + ",app!=x"), Namespace: k.Namespace},
					{Labels: mustParse("team in (search,growth)"), Index: byNode, Value: "all"}, {Labels: mustParse("!team")},
				} {
					compareSelection(t, want, s.Database, f)
				}
			}
			compareSelection(t, want, s.Database, Filter{Namespace: "nowhere"})
			compareSelection(t, want, s.Database, Filter{Owner: "nobody"})
			for k := range want {
				s.writer.Remove(k)
			}
			if st := s.Stats(); st.Objects != 0 || st.Bytes != 0 || st.JSON != 0 || st.Dictionary != 0 {
				t.Errorf("an empty database has %+v", st)
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

func compareSelection(t *testing.T, objects map[kube.Key]string, s *Database, f Filter) {
	t.Helper()
	var want, got []kube.Key
	for k, o := range objects {
		r := mustRead(t, o)
		if (f.Namespace == "" || k.Namespace == f.Namespace) && (f.Labels == nil || f.Labels.Matches(r.Labels())) &&
			(f.Owner == "" || slices.ContainsFunc(r.Owners(), func(o kube.Owner) bool { return o.UID == f.Owner })) &&
			(f.Index == nil || f.Value == "all" || nodeOf(o) == f.Value) {
			want = append(want, k)
		}
	}
	for o := range s.Select(f).All {
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
	s := filled(samples.Random.WebApp, 500)
	for slot, p := range s.objects.slots {
		if p.codec == nil {
			t.Fatalf("slot %d is not compressed", slot)
		}
		broken := *p
		broken.data = p.data[:p.labelValuesLength] + "broken"
		s.writer.replace(uint32(slot), &broken)
	}
	var last *PackedObject
	n := 0
	for _, f := range []Filter{{}, {Namespace: "team-search"}, {Labels: mustParse("team=search")}, {Owner: "x"}} {
		for o := range s.Select(f).All {
			last = o
			n++
		}
	}
	s.IndexLabel("team")
	for range s.Select(Filter{Labels: mustParse("team=growth")}).All {
		n++
	}
	if n < 500 {
		t.Errorf("%d objects", n)
	}
	if _, err := last.AppendJSON(nil); err == nil {
		t.Error("what is broken was read")
	}
}

// What a caller does to the JSON that it got concerns nobody else.
func TestJSONIsPrivate(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 300} { // as it was sent, and compressed
		s := filled(samples.Random.WebApp, count)
		for p := range s.Select(Filter{}).All {
			before := jsonOf(t, p)
			b, _ := p.AppendJSON(nil)
			clear(b[:cap(b)])
			if jsonOf(t, p) != before {
				t.Fatal("the database was changed")
			}
			prefixed, err := p.AppendJSON([]byte("x"))
			if err != nil || string(prefixed) != "x"+before {
				t.Fatalf("AppendJSON: %v", err)
			}
		}
	}
}

// An object that was read stays as it was, and so does a list.
func TestObjectsStay(t *testing.T) {
	t.Parallel()
	s := filled(samples.Random.WebApp, 300)
	before := make(map[kube.Key]*PackedObject)
	want := make(map[kube.Key]string)
	for o := range s.Select(Filter{}).All {
		before[o.Key()], want[o.Key()] = o, jsonOf(t, o)
	}
	n := 0
	for o := range s.Select(Filter{}).All {
		if n++; n == 1 {
			for k := range want {
				s.writer.Remove(k)
			}
		}
		if got := jsonOf(t, o); got != want[o.Key()] {
			t.Fatalf("%s changed", o.Key())
		}
	}
	if n != 300 || s.Len() != 0 {
		t.Errorf("%d were shown, and %d are there", n, s.Len())
	}
	for k, o := range before {
		if jsonOf(t, o) != want[k] {
			t.Errorf("%s changed", k)
		}
	}
}

// Readers see whole objects and consistent lists while everything changes.
func TestReadersAndTheWriter(t *testing.T) {
	t.Parallel()
	s := newTestStore(Options{})
	var done atomic.Bool
	var readers sync.WaitGroup
	var indexes []wire.Index
	for i := range 5 {
		indexes = append(indexes, kube.NewIndex(fmt.Sprint(i), func(w *samples.WebApp) []string { return []string{w.Namespace} }))
	}
	for range 4 {
		readers.Go(func() {
			for !done.Load() {
				seen := make(map[kube.Key]bool)
				for o := range s.Select(Filter{Labels: mustParse("tier=front")}).All {
					if seen[o.Key()] || o.Labels().Get("tier") != "front" {
						t.Errorf("%s twice, or wrong", o.Key())
					}
					seen[o.Key()] = true
					b, err := o.AppendJSON(nil)
					if err != nil {
						t.Error(err)
						return
					}
					if r, err := PackMetadata(b); err != nil || !r.version.Equal(o.version) {
						t.Errorf("the entry is at %s, the content is not: %v", o.ResourceVersion(), err)
					}
					s.Get(o.Key())
				}
				s.Stats()
				s.Version()
			}
		})
	}
	readers.Go(func() {
		for i, x := range indexes {
			s.IndexLabel([]string{"team", "tier", "x"}[i%3])
			s.Index(x)
		}
	})
	random := samples.New(5)
	for i := range 700 {
		o := random.WebApp(i % 200)
		o = strings.Replace(o, `"resourceVersion":"`, fmt.Sprintf(`"resourceVersion":"%d`, i+1), 1)
		s.insert(o)
		if i%3 == 0 {
			for o := range s.Select(Filter{}).All {
				s.writer.Remove(o.Key())
				break
			}
		}
	}
	done.Store(true)
	readers.Wait()
	for i, x := range indexes {
		n := 0
		for range s.Select(Filter{Index: x, Value: "team-search"}).All {
			n++
		}
		if want := len(slices.Collect(s.Select(Filter{Namespace: "team-search"}).All)); n != want {
			t.Errorf("index %d has %d of %d", i, n, want)
		}
	}
}

// An object for which the function of an index panicked may have any value, and the panic is
// reported.
func TestIndex(t *testing.T) {
	t.Parallel()
	s := newTestStore(Options{})
	object := func(name string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"ns","uid":"u","resourceVersion":"1"}}`, name)
	}
	s.insert(object("a"))
	byName := kube.NewIndex("name", func(w *samples.WebApp) []string {
		if w.Name == "bad" {
			panic("oh no")
		}
		return []string{w.Name}
	})
	for range 2 { // to repeat it does nothing
		s.Index(byName)
	}
	s.insert(object("bad"))
	if s.Len() != 2 || len(s.errors) != 1 || !strings.Contains(s.errors[0].Error(), "oh no") {
		t.Errorf("%d objects, errors: %v", s.Len(), s.errors)
	}
	if got := len(s.contents(t, Filter{Index: byName, Value: "a"})); got != 2 {
		t.Errorf("%d objects under a", got)
	}
	if got := len(s.contents(t, Filter{Index: byName, Value: "b"})); got != 1 {
		t.Errorf("%d objects under b", got)
	}
}

// Owners that are no uuids, and share a hash with nobody, are found too.
func TestOddOwners(t *testing.T) {
	t.Parallel()
	s := newTestStore(Options{})
	for i := range 10 {
		s.insert(fmt.Sprintf(`{"metadata":{"name":"o%d","uid":"u%d","resourceVersion":"%d","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"a","uid":"odd%d"},{"apiVersion":"g/v1","kind":"L","name":"b","uid":"both","controller":true}]}}`, i, i, i+1, i%2))
	}
	for owner, want := range map[types.UID]int{"odd0": 5, "odd1": 5, "both": 10, "": 10, "odd": 0} {
		if got := len(slices.Collect(s.Select(Filter{Owner: owner}).All)); got != want {
			t.Errorf("%d objects of %q, want %d", got, owner, want)
		}
	}
}
