package cache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// The answers of deletes that mean that the object is still there, and those that do not.
func TestEntryOfAnswers(t *testing.T) {
	t.Parallel()
	c := New(nil)
	for _, test := range []struct {
		verb   kube.Verb
		plural string
		answer string
		want   entryKind
	}{
		{kube.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","deletionGracePeriodSeconds":30}}`, value},
		{kube.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","deletionGracePeriodSeconds":0}}`, tombstone},
		{kube.VerbDelete, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5"}}`, tombstone},
		{kube.VerbDelete, "services", `{"kind":"Service","metadata":{"uid":"u","resourceVersion":"5"}}`, tombstone},
		{kube.VerbDelete, "namespaces", `{"kind":"Namespace","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"},"spec":{"finalizers":["kubernetes"]}}`, value},
		{kube.VerbDelete, "namespaces", `{"kind":"Namespace","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"},"spec":{}}`, tombstone},
		{kube.VerbDelete, "pods", `{"kind":"Status","details":{"uid":"u"}}`, tombstone},
		// So says the repetition of a delete that has met nothing: of what, it does not say.
		{kube.VerbDelete, "pods", `{"kind":"Status","status":"Success"}`, doubt},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x","finalizers":["f"]}}`, value},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"5","deletionTimestamp":"x"}}`, tombstone},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u","resourceVersion":"abc"}}`, doubt},
		{kube.VerbPatch, "pods", `{"kind":"Pod","metadata":{"uid":"u"}}`, doubt},
		{kube.VerbPatch, "pods", `{`, doubt},
	} {
		r := &kube.Request{Verb: test.verb, Resource: pods.Resource, Namespace: "ns", Name: "a"}
		r.Resource.Plural = test.plural
		var answer outcome
		_ = kube.Unmarshal([]byte(test.answer), &answer)
		if got := c.entryOf(r, keyOf(r.Ref()), &kube.Response{Body: []byte(test.answer)}, answer).kind; got != test.want {
			t.Errorf("%s %s answered %s: %d, want %d", test.verb, test.plural, test.answer, got, test.want)
		}
	}
}

// Answers come in any order: what was under way at the same time is ordered by versions,
// and what was begun later is newer whatever its version.
func TestOrderOfAnswers(t *testing.T) {
	t.Parallel()
	val := func(uid types.UID, version string) overlayEntry {
		return overlayEntry{kind: value, uid: uid, version: version, seen: []sighting{{uid, version}}}
	}
	gone := func(uid types.UID, version string) overlayEntry {
		return overlayEntry{kind: tombstone, uid: uid, seen: []sighting{{uid, version}}}
	}
	missing := func(uid types.UID, version string) overlayEntry { // a read has found nothing
		return overlayEntry{kind: tombstone, seen: []sighting{{uid, version}}}
	}
	unknown := overlayEntry{kind: doubt}
	for _, c := range []struct {
		name     string
		old, new overlayEntry
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
		got := c.new.after(c.old, c.later)
		text := fmt.Sprintf("%s %s@%s", [...]string{"doubt", "value", "gone"}[got.kind], got.uid, got.version)
		if diff := cmp.Diff(c.want, text); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A stream that shows another object than those that are known to be gone: if it was told
// who was the last of them, it came after; if not, it may be gone too.
func TestPassedTombstones(t *testing.T) {
	t.Parallel()
	shown := Record{UID: "v", ResourceVersion: "9"}
	for uid, want := range map[types.UID]bool{"u": true, "": false} {
		e := overlayEntry{kind: tombstone, uid: uid, seen: []sighting{{"u", "5"}}}
		if got := e.passed("9", shown, true, false); got != want {
			t.Errorf("of %q: %t, want %t", uid, got, want)
		}
		if e.passed("9", Record{UID: "u", ResourceVersion: "5"}, true, false) || e.passed("4", shown, true, false) {
			t.Errorf("of %q: passed too early", uid)
		}
	}
}

// Regression: an object was deleted that a stream with a selector did not show, and the
// stream had got further than its last known version. That counted as having seen the
// deletion; then the stream was told a version in between, which matched, and was read.
func TestWhatASelectorLeavesOutIsNotPassed(t *testing.T) {
	t.Parallel()
	e := overlayEntry{kind: tombstone, uid: "u", seen: []sighting{{"u", "5"}}}
	if e.passed("6", Record{}, false, true) {
		t.Error("that it is not shown counts as its end")
	}
	if !e.passed("6", Record{}, false, false) || !e.passed("9", Record{UID: "v", ResourceVersion: "9"}, true, true) {
		t.Error("a stream that shows all objects, or a successor, has not seen its end")
	}
	e.version = "8"
	if e.passed("7", Record{}, false, true) || !e.passed("8", Record{}, false, true) {
		t.Error("a version that the end precedes is not what counts")
	}
}

// Regression: of many that had one name the latest was forgotten, so that a stream that was
// still to see it counted as having seen all.
func TestTheLatestSightingStays(t *testing.T) {
	t.Parallel()
	e := overlayEntry{kind: tombstone, uid: "latest", seen: addSighting(nil, sighting{"latest", "100"})}
	for i := range 3 * mostSeen {
		e.seen = addSighting(e.seen, sighting{types.UID(fmt.Sprint("older", i)), fmt.Sprint(10 + i)})
	}
	if last, known := e.lastSeen(); last != "100" || !known || len(e.seen) != mostSeen {
		t.Errorf("the last was seen at %q (%t), of %d", last, known, len(e.seen))
	}
	if e.passed("99", Record{UID: "older0"}, true, false) || !e.passed("100", Record{}, false, false) {
		t.Error("a stream has passed it before it has got there, or not when it has")
	}
	e.seen = addSighting(e.seen, sighting{uid: "undated"})
	for i := range 3 * mostSeen {
		e.seen = addSighting(e.seen, sighting{types.UID(fmt.Sprint("newer", i)), fmt.Sprint(110 + i)})
	}
	if last, known := e.lastSeen(); known {
		t.Errorf("what is not known is known to be %q", last)
	}
}
