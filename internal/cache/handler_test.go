package cache

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/cache/internal/samples"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Promise 7 with a stream that selects: what it shows is read from it, what it does not
// show from the server.
func TestReadsOfWhatIsSelected(t *testing.T) {
	t.Parallel()
	red := webApps
	red.LabelSelector = "v=1"
	withFixture(t, []wire.Stream{red}, func(b *fixture) {
		const lists = 2 // all of show's are sent
		b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"a","labels":{"v":"1"}},"spec":1}`))
		b.checkReads(lists + 2)
		b.catchUp()
		b.checkReads(lists)
		b.must(request(wire.VerbPatch, "a", `{"spec":2}`))
		b.checkReads(lists)
		b.catchUp()
		b.checkReads(lists)
		b.must(request(wire.VerbPatch, "a", `{"metadata":{"labels":{"v":"2"}}}`))
		b.checkReads(lists) // still from what was answered
		b.catchUp()
		b.checkReads(lists + 2)
		b.changeByOthers(request(wire.VerbPatch, "a", `{"metadata":{"labels":{"v":"1"}}}`))
		b.catchUp()
		b.must(request(wire.VerbDelete, "a", ""))
		b.checkReads(lists + 2)
		b.catchUp()
		b.checkReads(lists + 2)
		if n := b.caches.overlay.Len(); n != 0 {
			b.Errorf("%d entries are left", n)
		}
	})
}

// A client of Client.Live reads from the server what a store could answer. What it writes counts
// for the reads of all others.
func TestLiveReads(t *testing.T) {
	t.Parallel()
	withFixture(t, everything, func(b *fixture) {
		b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"a","labels":{"v":"1"}},"spec":1}`))
		b.catchUp()
		// Somebody changes it, and the stream does not show that yet.
		b.changeByOthers(request(wire.VerbPatch, "a", `{"spec":2}`))
		live := kube.NewClientFromHandler(b.client).Live()
		before := b.server.requests
		app, err := kube.Namespaced[labelled](live, "ns").Get(b.Context(), "a")
		if err != nil || app.Spec != 2 {
			b.Errorf("a live read shows %+v, %v", app, err)
		}
		apps, err := kube.Namespaced[labelled](live, "ns").List(b.Context(), kube.Label("v", "1"))
		if err != nil || len(apps) != 1 || apps[0].Spec != 2 {
			b.Errorf("a live list shows %+v, %v", apps, err)
		}
		if made := b.server.requests - before; made != 2 {
			b.Errorf("two live reads made %d requests", made)
		}
		if _, err := kube.Namespaced[labelled](live, "ns").Patch(b.Context(), "a", kube.MergePatch(map[string]int{"spec": 3})); err != nil {
			b.Fatal(err)
		}
		b.checkReads(0)
	})
}

// Lists by owner and by index, from the records, from the index, and from what was written
// and is not shown yet.
func TestListsByOwnerAndIndex(t *testing.T) {
	t.Parallel()
	for _, indexed := range []bool{false, true} {
		withFixture(t, nil, func(b *fixture) {
			sub, err := b.caches.Open(b.Context(), webApps, func(Change) {})
			if err != nil {
				b.Fatal(err)
			}
			b.catchUp()
			calls := 0
			byLabel := kube.NewIndex("label", func(w *labelled) []string { calls++; return []string{w.Labels["v"]} })
			if indexed {
				if err := sub.Store().Index(byLabel); err != nil {
					b.Fatal(err)
				}
			}
			for name, v := range map[string]string{"a": "1", "b": "2", "c": "1", "d": "1"} {
				b.changeByOthers(request(wire.VerbCreate, "", `{"metadata":{"name":"`+name+`","labels":{"v":"`+v+`"}}}`))
			}
			b.catchUp()
			b.must(request(wire.VerbPatch, "a", `{"metadata":{"labels":{"v":"2"}}}`))
			b.must(request(wire.VerbPatch, "b", `{"metadata":{"labels":{"v":"1"}}}`))
			b.must(request(wire.VerbDelete, "c", ""))
			before := b.server.requests
			calls = 0
			apps, err := kube.Namespaced[labelled](kube.NewClientFromHandler(b.client), "ns").List(b.Context(), byLabel.Is("1"))
			if err != nil {
				b.Fatal(err)
			}
			var names []string
			for _, app := range apps {
				names = append(names, app.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff([]string{"b", "d"}, names); diff != "" || b.server.requests > before {
				b.Errorf("indexed %t: %d requests, %s", indexed, b.server.requests-before, diff)
			}
			// The two that were written are looked at in any case.
			if want := map[bool]int{false: 3, true: 2}[indexed]; calls != want {
				b.Errorf("indexed %t: the function was called %d times, want %d", indexed, calls, want)
			}
		})
	}
}

// labelled is the type of the objects that a bench serves.
type labelled = kube.CustomResource[labelledSpec, int]

type labelledSpec int

func (labelledSpec) Definition() kube.Definition { return samples.WebAppSpec{}.Definition() }
