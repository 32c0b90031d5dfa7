package overlay

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// Answers come in any order: what was under way at the same time is ordered by versions,
// and what was begun later is newer whatever its version.
func TestOrderOfAnswers(t *testing.T) {
	t.Parallel()
	val := func(uid types.UID, version string) Entry {
		return Entry{Kind: Value, UID: uid, Version: version, Observed: []ident.Version{ident.NewVersion(uid, version)}}
	}
	gone := func(uid types.UID, version string) Entry {
		return Entry{Kind: Tombstone, UID: uid, Observed: []ident.Version{ident.NewVersion(uid, version)}}
	}
	missing := func(uid types.UID, version string) Entry { // a read has found nothing
		return Entry{Kind: Tombstone, Observed: []ident.Version{ident.NewVersion(uid, version)}}
	}
	unknown := Entry{Kind: Doubt}
	for _, c := range []struct {
		name     string
		old, new Entry
		later    bool
		want     string
	}{
		{"newer version", val("u", "5"), val("u", "6"), false, "value u@6"},
		{"older version, late", val("u", "6"), val("u", "5"), false, "value u@6"},
		{"older version, of a restored server", val("u", "6"), val("u", "5"), true, "value u@5"},
		{"older object, late", val("v", "9"), val("u", "5"), false, "value v@9"},
		{"deleted, late value", gone("u", "5"), val("u", "6"), false, "gone u@"},
		{"deleted, restored", gone("u", "5"), val("u", "6"), true, "value u@6"},
		{"deleted, made anew", gone("u", "5"), val("v", "7"), false, "value v@7"},
		{"late deletion of the one before", val("v", "7"), gone("u", "5"), false, "value v@7"},
		{"deletion of the one after", val("u", "5"), gone("v", "7"), false, "gone v@"},
		{"deletion of one that was never seen", val("u", "5"), gone("v", ""), false, "doubt @"},
		{"a doubt stays beside what it may be later than", unknown, val("u", "5"), false, "doubt @"},
		{"a doubt is settled by what was begun later", unknown, val("u", "5"), true, "value u@5"},
		{"a doubt beside a value", val("u", "5"), unknown, false, "doubt @"},
		{"not found, late value of the same", missing("u", "5"), val("u", "6"), false, "gone @"},
		{"not found, value of another, before or after", missing("u", "5"), val("v", "6"), false, "doubt @"},
		{"not found, and a deletion", missing("u", "5"), gone("v", "7"), false, "gone @"},
		{"two deletions", gone("u", "5"), gone("v", "7"), false, "gone v@"},
	} {
		got := c.new.mergeOverlapping(c.old)
		if c.later {
			got = c.new.merge(c.old)
		}
		text := fmt.Sprintf("%s %s@%s", [...]string{"doubt", "value", "gone"}[got.Kind], got.UID, got.Version)
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A stream shows another object than those that a tombstone is about. If it is known which of
// them was the last, the other object came after it; if not, the other object may be gone too.
func TestPassedTombstones(t *testing.T) {
	t.Parallel()
	for uid, want := range map[types.UID]bool{"u": true, "": false} {
		e := Entry{Kind: Tombstone, UID: uid, Observed: []ident.Version{ident.NewVersion("u", "5")}}
		if got := e.IsObservedBy(Observation{Version: "9", Present: true, UID: "v", ResourceVersion: "9", Selects: false}); got != want {
			t.Errorf("of %q: %t, want %t", uid, got, want)
		}
		if e.IsObservedBy(Observation{Version: "9", Present: true, UID: "u", ResourceVersion: "5", Selects: false}) || e.IsObservedBy(Observation{Version: "4", Present: true, UID: "v", ResourceVersion: "9", Selects: false}) {
			t.Errorf("of %q: passed too early", uid)
		}
	}
}

// Regression: an object was deleted that a stream with a selector did not show, and the stream
// had passed the object's last known version. That counted as having observed the deletion. Then
// the stream received a version in between, which matched, and reads showed it.
func TestWhatASelectorLeavesOutIsNotPassed(t *testing.T) {
	t.Parallel()
	e := Entry{Kind: Tombstone, UID: "u", Observed: []ident.Version{ident.NewVersion("u", "5")}}
	if e.IsObservedBy(Observation{Version: "6", Selects: true}) {
		t.Error("that it is not shown counts as its end")
	}
	if !e.IsObservedBy(Observation{Version: "6", Selects: false}) || !e.IsObservedBy(Observation{Version: "9", Present: true, UID: "v", ResourceVersion: "9", Selects: true}) {
		t.Error("a stream that shows all objects, or a successor, has not seen its end")
	}
	e.Version = "8"
	if e.IsObservedBy(Observation{Version: "7", Selects: true}) || !e.IsObservedBy(Observation{Version: "8", Selects: true}) {
		t.Error("a version that the end precedes is not what counts")
	}
}

// Regression: of many with one name the latest was forgotten, so that a stream that was still to
// see the latest counted as having seen all.
func TestTheLatestSightingStays(t *testing.T) {
	t.Parallel()
	e := Entry{Kind: Tombstone, UID: "latest", Observed: []ident.Version{ident.NewVersion("latest", "100")}}
	for i := range 3 * maxObserved {
		e.Observed = addObserved(e.Observed, ident.NewVersion(types.UID(fmt.Sprint("older", i)), fmt.Sprint(10+i)))
	}
	if last, known := e.lastObserved(); last != "100" || !known || len(e.Observed) != maxObserved {
		t.Errorf("the last was seen at %q (%t), of %d", last, known, len(e.Observed))
	}
	if e.IsObservedBy(Observation{Version: "99", Present: true, UID: "older0", ResourceVersion: "", Selects: false}) || !e.IsObservedBy(Observation{Version: "100", Selects: false}) {
		t.Error("a stream has passed it before it has got there, or not when it has")
	}
	e.Observed = addObserved(e.Observed, ident.NewVersion("undated", ""))
	for i := range 3 * maxObserved {
		e.Observed = addObserved(e.Observed, ident.NewVersion(types.UID(fmt.Sprint("newer", i)), fmt.Sprint(110+i)))
	}
	if last, known := e.lastObserved(); known {
		t.Errorf("what is not known is known to be %q", last)
	}
}

// Regression: a reconcile was triggered by an object of an incomplete list. The reconcile read
// that the object does not exist, because the program had deleted an earlier object of this name.
// Nothing triggered the reconcile again.
func TestTombstoneDoesNotHideASuccessorWithinAList(t *testing.T) {
	t.Parallel()
	e := Entry{Kind: Tombstone, UID: "old", Observed: []ident.Version{ident.NewVersion("old", "140")}, recorded: time.Now()}
	successor := Observation{Version: "119", Present: true, UID: "new", ResourceVersion: "145"}
	if got := e.Read(successor, podsOfV1, wire.Full); got != Stored {
		t.Errorf("the successor is %v, want what is stored", got)
	}
	predecessor := Observation{Version: "119", Present: true, UID: "older", ResourceVersion: "118"}
	if got := e.Read(predecessor, podsOfV1, wire.Full); got != Absent {
		t.Errorf("an earlier object is %v, want it absent", got)
	}
}
