package overlay

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/kube"
)

var (
	collection = Collection{Plural: "pods", Namespace: "ns"}
	pod        = Key{collection, "a"}
	podsOfV1   = kube.Resource{Plural: "pods"}
)

// isNeededBy reports that entries are needed by a store that shows o.
func isNeededBy(o Observation) (func(Key, Entry) bool, func(Collection, CollectionDoubt) bool) {
	return func(_ Key, e Entry) bool { return !e.IsObservedBy(o) }, func(_ Collection, d CollectionDoubt) bool { return !d.IsObservedBy(o) }
}

// Regression: a tombstone went after fifteen minutes although a stream, whose watch was away,
// had not observed the deletion. Reads showed the object again.
func TestTombstoneStaysWhileItIsNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		o.Record(pod, o.Begin(), Entry{Kind: Tombstone, UID: "u"})
		away := Observation{Version: "5", Present: true, UID: "u", ResourceVersion: "5"}
		time.Sleep(time.Hour)
		o.Sweep(isNeededBy(away))
		e, ok := o.Get(pod)
		if !ok || e.Read(away, podsOfV1, kube.Full) == Stored {
			t.Fatalf("after an hour the tombstone is %+v (%t)", e, ok)
		}
		// A watch that is open for longer than it can be silent has shown the deletion.
		open := away
		open.OpenSince = time.Now()
		time.Sleep(MaxSilence - time.Second)
		if e.IsObservedBy(open) {
			t.Error("it counts as observed before the watch has had the time")
		}
		time.Sleep(2 * time.Second)
		o.Sweep(isNeededBy(open))
		if o.Len() != 0 {
			t.Error("it stays although the watch has been open")
		}
	})
}

// Regression: a collection was deleted at a server whose versions cannot be compared, and all
// later reads were live. They are until the watch has been open for longer than it can be
// silent, and the version is asked for once.
func TestCollectionDoubtWithoutVersionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		open := Observation{Version: "abc", OpenSince: time.Now()}
		o.DoubtCollection(collection)
		d := o.Doubts(collection)[collection]
		if !d.NeedsVersion() || d.IsObservedBy(open) {
			t.Errorf("at once: %+v", d)
		}
		d = o.BoundDoubt(collection, d, "abc")
		if d.NeedsVersion() {
			t.Error("a version that cannot be compared is asked for again")
		}
		time.Sleep(MaxSilence + time.Second)
		if !d.IsObservedBy(open) || d.IsObservedBy(Observation{Version: "abc"}) {
			t.Errorf("later: %+v", d)
		}
		o.Sweep(isNeededBy(open))
		if len(o.Doubts(collection)) != 0 {
			t.Error("the doubt stays")
		}
	})
}

// Regression: the content of a write was kept for as long as a stream did not observe it,
// although it is too old to be read after a minute.
func TestContentThatIsTooOldToBeReadIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		behind := Observation{Version: "5"}
		value := func(i int) {
			k := Key{collection, fmt.Sprint(i)}
			o.Record(k, o.Begin(), Entry{Kind: Value, UID: "u", Version: "9", Object: make([]byte, 100), Resource: podsOfV1})
		}
		for i := range 10 {
			value(i)
		}
		e, _ := o.Get(Key{collection, "3"})
		if e.Read(behind, podsOfV1, kube.Full) != Written {
			t.Errorf("a new value is not read: %+v", e)
		}
		time.Sleep(MaxAge + time.Second)
		value(10)
		o.Sweep(isNeededBy(behind))
		kept := 0
		for _, k := range o.Keys(collection) {
			e, _ := o.Get(k)
			kept += len(e.Object)
			if e.Read(behind, podsOfV1, kube.Full) == Stored {
				t.Errorf("%s: the store is read, which is behind", k.Name)
			}
		}
		if o.Len() != 11 || kept != 100 {
			t.Errorf("%d entries with %d bytes, want 11 with those of one", o.Len(), kept)
		}
	})
}
