package follow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube/wire"
)

// newTestSequence returns a sequence, and a function that returns what the sequence has yielded since the last
// call: the type of each change, the name and the version.
func newTestSequence() (*sequence, func() string) {
	var yielded []string
	q := &sequence{tracker: newObjectTracker(""), backoff: new(backoff), record: func(Change) {}}
	q.yield = func(c Change, err error) bool {
		if err != nil {
			yielded = append(yielded, "error")
			return true
		}
		yielded = append(yielded, fmt.Sprint(int(c.Type), c.Key.Name, "@", c.ResourceVersion))
		return true
	}
	return q, func() string {
		text := strings.Join(yielded, " ")
		yielded = nil
		return text
	}
}

// The example of objectTracker, and what it does to the version from which a watch is resumed.
func TestSequence(t *testing.T) {
	t.Parallel()
	q, yielded := newTestSequence()
	step := func(want, version string, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if got := yielded(); got != want || q.version != version {
			t.Errorf("%q at version %q, want %q at version %q", got, q.version, want, version)
		}
	}
	item := func(name string, version int) []byte {
		return fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":%q,"uid":"u-%s","resourceVersion":"%d"}}`, name, name, version)
	}
	added, modified, deleted, began, listed := int(ChangeAdded), int(ChangeModified), int(ChangeDeleted), int(ChangeListStarted), int(ChangeListed)
	step(fmt.Sprintf("%d@ %da@3 %db@5 %d@5", began, added, added, listed), "5",
		q.beginList(), q.putItem(item("a", 3)), q.putItem(item("b", 5)), q.endList("5"))
	step(fmt.Sprintf("%db@7", modified), "7", q.putItem(item("b", 7)), q.putItem(item("b", 5)))
	if e := q.expectedState(); e.version != "7" || e.newest.key.Name != "b" || e.isDeleted {
		t.Errorf("the expected state is %+v", e)
	}
	step(fmt.Sprintf("%d@ %dc@9 %db@7 %d@9", began, added, deleted, listed), "9",
		q.beginList(), q.putItem(item("a", 3)), q.putItem(item("c", 9)), q.endList("9"))
	step(fmt.Sprintf("%d@10", int(ChangeBookmark)), "10", q.bookmark("10"))
	id, err := q.readIdentity(item("c", 11))
	step(fmt.Sprintf("%dc@11", deleted), "11", err, q.remove(id, item("c", 11)))
	step("error", "11", q.putItem([]byte(`{"metadata":{"name":7}}`)))
	step(fmt.Sprintf("%d@ %da@3 %d@11", began, deleted, listed), "", q.beginList(), q.endUnservedList())
}

// What an error leads to: a fresh list, a report, and a wait.
func TestReactions(t *testing.T) {
	t.Parallel()
	gone, busy, refused := &wire.Error{Code: 410}, &wire.Error{Code: 429}, &wire.Error{Code: 500}
	var b backoff
	check := func(err error, needsList, isReported, waits bool) {
		t.Helper()
		if r := b.recordError(err, true); r.needsList != needsList || r.isReported != isReported || r.delay > 0 != waits {
			t.Errorf("%v: %+v", err, r)
		}
	}
	check(gone, true, false, false)
	check(gone, true, true, true) // the list before was of no use
	b.recordProgress()
	check(errEndedEarly, false, false, true)
	check(errRestored, true, true, false)
	check(errRelist, true, false, false)
	for range quietBusyAnswers {
		check(busy, false, false, true)
	}
	check(busy, false, true, true)
	b.recordProgress()
	for range maxVersionRefusals - 1 {
		check(refused, false, true, true)
	}
	check(refused, true, true, true)
}
