package progress

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// The newest change of each namespace, as a list of all changes would say; of namespaces that
// were forgotten it may be a later one, and never an earlier one.
func TestNewestChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		var n newestChanges
		want := make(map[string]int)
		namespaces := 1 + random.IntN(4*maxNamespaces)
		for version := range 600 {
			ns := fmt.Sprint("n", random.IntN(namespaces))
			n.record(ns, strconv.Itoa(version+1), false)
			want[ns] = version + 1
			if len(n.current) > maxNamespaces || len(n.previous) > maxNamespaces {
				t.Fatalf("%d and %d namespaces are kept", len(n.current), len(n.previous))
			}
		}
		late := 0
		for ns, version := range want {
			if c := n.newestIn(ns); c.isIn(strconv.Itoa(version - 1)) {
				t.Errorf("seed %d: %s at %d is %+v", seed, ns, version, c)
			} else if !c.isIn(strconv.Itoa(version)) {
				late++
			}
		}
		if len(want) <= maxNamespaces && late > 0 {
			t.Errorf("seed %d: of %d namespaces, %d are not exact", seed, len(want), late)
		}
		if c := n.newestIn(""); c.isIn("599") || !c.isIn("600") {
			t.Errorf("seed %d: of all namespaces it is %+v", seed, c)
		}
		if c := n.newestIn("unseen"); !c.isIn("600") {
			t.Errorf("seed %d: of a namespace without changes it is %+v", seed, c)
		}
	}
}

// A deletion that a list has found out counts at the version of the list, and until then no
// other store is known to have it.
func TestNewestChangesOfALaterList(t *testing.T) {
	t.Parallel()
	var n newestChanges
	n.record("ns", "50", false)
	n.beginList()
	n.record("ns", "70", true)
	n.record("other", "60", true)
	n.recordUnknown("ns")
	n.record("ns", "71", true)
	if n.newestIn("ns").isIn("1000") || !n.newestIn("other").isIn("60") || n.newestIn("").isIn("1000") {
		t.Errorf("within the list: %+v", n)
	}
	n.endList("80")
	if n.newestIn("ns").isIn("79") || !n.newestIn("ns").isIn("80") || !n.newestIn("other").isIn("60") {
		t.Errorf("after the list: %+v", n)
	}
}

// After the restoration of a backup, versions that are never reached again do not count.
func TestNewestChangesOfARestoredServer(t *testing.T) {
	t.Parallel()
	var n newestChanges
	for i := range 3 * maxNamespaces { // some are forgotten
		n.record(fmt.Sprint("n", i), strconv.Itoa(1000+i), false)
	}
	n.beginList()
	n.record("n5", "99", true)
	n.endList("100")
	for _, ns := range []string{"n0", "n5", fmt.Sprint("n", 3*maxNamespaces-1), "unseen", ""} {
		if c := n.newestIn(ns); !c.isIn("100") {
			t.Errorf("%q: %+v", ns, c)
		}
	}
}

// A version that is no number is in no other store.
func TestNewestChangeWithoutANumber(t *testing.T) {
	t.Parallel()
	var n newestChanges
	n.record("ns", "abc", false)
	if n.newestIn("ns").isIn("abc") || n.newestIn("ns").isIn("1000") {
		t.Errorf("%+v", n)
	}
	n.record("ns", "7", false)
	if !n.newestIn("ns").isIn("7") {
		t.Errorf("%+v", n)
	}
}
