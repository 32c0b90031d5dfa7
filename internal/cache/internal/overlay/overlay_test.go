package overlay

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

var (
	collection = Collection{Plural: "pods", Namespace: "ns"}
	pod        = Key{collection, "a"}
	podsOfV1   = wire.Resource{Plural: "pods"}
)

// isNeededBy reports entries as needed by a store that shows o.
func isNeededBy(o Observation) (func(Key, Entry) bool, func(Collection, CollectionEffect) bool) {
	return func(_ Key, e Entry) bool { return !e.IsObservedBy(o) }, func(_ Collection, d CollectionEffect) bool { return !d.IsObservedBy(o) }
}

// Regression: a tombstone went after fifteen minutes although a stream, whose watch was away,
// had not observed the deletion. Reads showed the object again.
func TestTombstoneStaysWhileItIsNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		o.Record(pod, o.Begin(), Entry{Kind: Tombstone, UID: "u"})
		away := Observation{Version: "5", IsPresent: true, UID: "u", ResourceVersion: "5"}
		time.Sleep(time.Hour)
		o.Sweep(isNeededBy(away))
		e, ok := o.Get(pod)
		if !ok || e.Read(away, podsOfV1, wire.Full) == Stored {
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

// Regression: the end of a watch made an entry without a version count as recorded long ago. A store whose
// watches had been open for fifteen minutes, apart from this gap, then counted as current, although it had
// not shown a deletion of a moment before.
func TestEndOfAWatchDoesNotMakeAStoreCurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		open := Observation{Version: "5", IsPresent: true, UID: "u", ResourceVersion: "5", OpenSince: time.Now()}
		time.Sleep(MaxSilence + time.Minute)
		o.Record(pod, o.Begin(), Entry{Kind: Tombstone, UID: "u"})
		o.MarkOld(pod.Collection)
		e, _ := o.Get(pod)
		if e.IsObservedBy(open) || e.Read(open, podsOfV1, wire.Full) == Stored {
			t.Errorf("the store counts as current: %+v", e)
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
		o.RecordCollectionEffect(collection)
		d := o.CollectionEffects(collection)[collection]
		if !d.NeedsVersion() || d.IsObservedBy(open) {
			t.Errorf("at once: %+v", d)
		}
		d = o.SetEffectVersion(collection, d, "abc")
		if d.NeedsVersion() {
			t.Error("a version that cannot be compared is asked for again")
		}
		time.Sleep(MaxSilence + time.Second)
		if !d.IsObservedBy(open) || d.IsObservedBy(Observation{Version: "abc"}) {
			t.Errorf("later: %+v", d)
		}
		o.Sweep(isNeededBy(open))
		if len(o.CollectionEffects(collection)) != 0 {
			t.Error("the effect stays")
		}
	})
}

// Regression: a server sends no bookmarks for a kind, and nothing of the kind changes. The stream never reached the
// version of an effect. Each read after a deletion of the collection was live, until the next list.
func TestCollectionDoubtEndsByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		open := Observation{Version: "5", OpenSince: time.Now()}
		o.RecordCollectionEffect(collection)
		d := o.SetEffectVersion(collection, o.CollectionEffects(collection)[collection], "8")
		if d.IsObservedBy(open) {
			t.Error("the effect is observed at once")
		}
		time.Sleep(MaxSilence + time.Second)
		if away := (Observation{Version: "5"}); !d.IsObservedBy(open) || d.IsObservedBy(away) {
			t.Errorf("later: %+v", d)
		}
	})
}

// Regression: a value lost its content with the age at which reads use it no more. The list that
// missed the object could not publish the deletion then.
func TestContentStaysUntilAllStreamsHaveObservedIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := New()
		k, behind := Key{collection, "a"}, Observation{Version: "5"}
		o.Record(k, o.Begin(), Entry{Kind: Value, UID: "u", Version: "9", Object: []byte("content"), Resource: podsOfV1})
		e, _ := o.Get(k)
		if e.Read(behind, podsOfV1, wire.Full) != Answered {
			t.Errorf("a new value is not read: %+v", e)
		}
		time.Sleep(MaxAge + time.Second)
		o.Sweep(isNeededBy(behind))
		e, _ = o.Get(k)
		if e.Read(behind, podsOfV1, wire.Full) != Uncertain {
			t.Errorf("an old value is read: %+v", e)
		}
		if string(e.Object) != "content" {
			t.Errorf("the content is %q", e.Object)
		}
		time.Sleep(MaxAge + time.Second)
		o.Sweep(isNeededBy(Observation{Version: "9"}))
		if o.Len() != 0 {
			t.Error("the value stays although the stream has observed it")
		}
	})
}

// Regression: the answer of a write came after the restoration of a backup had been found. The answer showed
// a state that the restoration had undone. For a minute an apply was skipped because of the answer.
func TestAnswerFromBeforeARestorationIsADoubt(t *testing.T) {
	t.Parallel()
	o := New()
	value := Entry{Kind: Value, UID: "u", Version: "1005", Holders: []ident.Version{ident.NewVersion("u", "1005")}}
	before := o.Begin()
	o.InvalidateGroups("", func(string) bool { return true })
	o.Record(pod, before, value)
	if e, ok := o.Get(pod); !ok || e.Kind != UnknownState {
		t.Errorf("the write that began before: %+v (%t), want an unknown state", e, ok)
	}
	o.ReplaceWithRead(pod, before, value)
	if e, ok := o.Get(pod); !ok || e.Kind != UnknownState {
		t.Errorf("the read that began before: %+v (%t), want an unknown state", e, ok)
	}
	value.Version = "51"
	o.Record(pod, o.Begin(), value)
	if e, ok := o.Get(pod); !ok || e.Kind != Value || e.Version != "51" {
		t.Errorf("the write that began afterwards: %+v (%t), want its value", e, ok)
	}
}

// The version of a deletion is not known. So a restored server may have an object again that was
// deleted, although the object is older than the backup. A program that took the object for deleted
// did not reconcile it.
func TestRestorationPutsDeletionsInDoubt(t *testing.T) {
	t.Parallel()
	o := New()
	before := Observation{Version: "40", IsPresent: true, UID: "u", ResourceVersion: "40"}
	o.Record(pod, o.Begin(), Entry{Kind: Tombstone, UID: "u", Holders: []ident.Version{ident.NewVersion("u", "40")}})
	if e, _ := o.Get(pod); e.Read(before, podsOfV1, wire.Full) != Absent {
		t.Errorf("the deletion is not read: %+v", e)
	}
	o.InvalidateGroups("", func(string) bool { return true })
	if e, _ := o.Get(pod); e.Read(before, podsOfV1, wire.Full) != Uncertain {
		t.Errorf("after the restoration a read relies on the deletion: %+v", e)
	}
}

// A child of the object was deleted by somebody else: the object may be gone. A read that began before
// does not answer whether it is.
func TestRecordPossiblyGone(t *testing.T) {
	t.Parallel()
	o := New()
	shown := Observation{Version: "40", IsPresent: true, UID: "u", ResourceVersion: "40"}
	value := Entry{Kind: Value, UID: "u", Version: "40", Holders: []ident.Version{ident.NewVersion("u", "40")}}
	read := func() ReadResult {
		e, ok := o.Get(pod)
		if !ok {
			return Stored
		}
		return e.Read(shown, podsOfV1, wire.Full)
	}
	o.RecordPossiblyGone(pod, "u")
	before := o.Begin()
	o.RecordPossiblyGone(pod, "u")
	if o.ReplaceWithRead(pod, before, value); read() != Uncertain {
		t.Error("a read that began before the unknown state has settled it")
	}
	if o.ReplaceWithRead(pod, o.Begin(), value); read() != Stored {
		t.Error("a read has not settled the unknown state")
	}
	o.RecordPossiblyGone(pod, "u")
	o.ReplaceWithRead(pod, o.Begin(), Entry{Kind: Tombstone, Holders: []ident.Version{ident.NewVersion("u", "40")}})
	if o.RecordPossiblyGone(pod, "u"); read() != Absent {
		t.Error("an object that is known to be gone has an unknown state")
	}
	if o.RecordPossiblyGone(pod, "successor"); read() != Uncertain {
		t.Error("a successor of the name has no unknown state")
	}
}
