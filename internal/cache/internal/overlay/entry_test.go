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
		return Entry{Kind: Value, UID: uid, Version: version, Holders: []ident.Version{ident.NewVersion(uid, version)}}
	}
	gone := func(uid types.UID, version string) Entry {
		return Entry{Kind: Tombstone, UID: uid, Holders: []ident.Version{ident.NewVersion(uid, version)}}
	}
	missing := func(uid types.UID, version string) Entry { // a read has found nothing
		return Entry{Kind: Tombstone, Holders: []ident.Version{ident.NewVersion(uid, version)}}
	}
	unknown := Entry{Kind: UnknownState}
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
		{"deletion of one that was never seen", val("u", "5"), gone("v", ""), false, "unknown @"},
		{"an unknown state stays beside what it may be later than", unknown, val("u", "5"), false, "unknown @"},
		{"an unknown state is settled by what was begun later", unknown, val("u", "5"), true, "value u@5"},
		{"an unknown state beside a value", val("u", "5"), unknown, false, "unknown @"},
		{"not found, late value of the same", missing("u", "5"), val("u", "6"), false, "gone @"},
		{"not found, value of another, before or after", missing("u", "5"), val("v", "6"), false, "unknown @"},
		{"not found, and a deletion", missing("u", "5"), gone("v", "7"), false, "gone @"},
		{"two deletions", gone("u", "5"), gone("v", "7"), false, "gone v@"},
	} {
		got := c.new.mergeOverlapping(c.old)
		if c.later {
			got = c.new.merge(c.old)
		}
		text := fmt.Sprintf("%s %s@%s", [...]string{"unknown", "value", "gone"}[got.Kind], got.UID, got.Version)
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
		e := Entry{Kind: Tombstone, UID: uid, Holders: []ident.Version{ident.NewVersion("u", "5")}}
		if got := e.IsObservedBy(Observation{Version: "9", IsPresent: true, UID: "v", ResourceVersion: "9", HasSelector: false}); got != want {
			t.Errorf("of %q: %t, want %t", uid, got, want)
		}
		if e.IsObservedBy(Observation{Version: "9", IsPresent: true, UID: "u", ResourceVersion: "5", HasSelector: false}) || e.IsObservedBy(Observation{Version: "4", IsPresent: true, UID: "v", ResourceVersion: "9", HasSelector: false}) {
			t.Errorf("of %q: passed too early", uid)
		}
	}
}

// Regression: an object was deleted that a stream with a selector did not show, and the stream
// had passed the object's last known version. That counted as having observed the deletion. Then
// the stream received a version in between, which matched, and reads showed it.
func TestWhatASelectorLeavesOutIsNotPassed(t *testing.T) {
	t.Parallel()
	e := Entry{Kind: Tombstone, UID: "u", Holders: []ident.Version{ident.NewVersion("u", "5")}}
	if e.IsObservedBy(Observation{Version: "6", HasSelector: true}) {
		t.Error("that it is not shown counts as its end")
	}
	if !e.IsObservedBy(Observation{Version: "6", HasSelector: false}) || !e.IsObservedBy(Observation{Version: "9", IsPresent: true, UID: "v", ResourceVersion: "9", HasSelector: true}) {
		t.Error("a stream that shows all objects, or a successor, has not seen its end")
	}
	e.Version = "8"
	if e.IsObservedBy(Observation{Version: "7", HasSelector: true}) || !e.IsObservedBy(Observation{Version: "8", HasSelector: true}) {
		t.Error("a version that the end precedes is not what counts")
	}
}

// Regression: of many with one name the latest was forgotten, so that a stream that was still to
// see the latest counted as having seen all.
func TestTheLatestSightingStays(t *testing.T) {
	t.Parallel()
	e := Entry{Kind: Tombstone, UID: "latest", Holders: []ident.Version{ident.NewVersion("latest", "100")}}
	for i := range 3 * maxHolders {
		e.Holders = addHolder(e.Holders, ident.NewVersion(types.UID(fmt.Sprint("older", i)), fmt.Sprint(10+i)))
	}
	if last, isKnown := e.lastHolderVersion(); last != "100" || !isKnown || len(e.Holders) != maxHolders {
		t.Errorf("the last was seen at %q (%t), of %d", last, isKnown, len(e.Holders))
	}
	if e.IsObservedBy(Observation{Version: "99", IsPresent: true, UID: "older0", ResourceVersion: "", HasSelector: false}) || !e.IsObservedBy(Observation{Version: "100", HasSelector: false}) {
		t.Error("a stream has passed it before it has got there, or not when it has")
	}
	e.Holders = addHolder(e.Holders, ident.NewVersion("undated", ""))
	for i := range 3 * maxHolders {
		e.Holders = addHolder(e.Holders, ident.NewVersion(types.UID(fmt.Sprint("newer", i)), fmt.Sprint(110+i)))
	}
	if last, isKnown := e.lastHolderVersion(); isKnown {
		t.Errorf("what is not known is known to be %q", last)
	}
}

// Regression: a reconcile was triggered by an object of an incomplete list. The reconcile read
// that the object does not exist, because the program had deleted an earlier object of this name.
// Nothing triggered the reconcile again.
func TestTombstoneDoesNotHideASuccessorWithinAList(t *testing.T) {
	t.Parallel()
	e := Entry{Kind: Tombstone, UID: "old", Holders: []ident.Version{ident.NewVersion("old", "140")}, recorded: time.Now()}
	successor := Observation{Version: "119", IsPresent: true, UID: "new", ResourceVersion: "145"}
	if got := e.Read(successor, podsOfV1, wire.Full); got != Stored {
		t.Errorf("the successor is %v, want what is stored", got)
	}
	predecessor := Observation{Version: "119", IsPresent: true, UID: "older", ResourceVersion: "118"}
	if got := e.Read(predecessor, podsOfV1, wire.Full); got != Absent {
		t.Errorf("an earlier object is %v, want it absent", got)
	}
}
