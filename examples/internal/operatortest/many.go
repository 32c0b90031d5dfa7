package operatortest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// many is how many objects there are at once.
const many = 200

// Many objects are reconciled at once: different objects in parallel, and no object twice at the same
// time. All objects become ready.
func (s *suite) testMany(t *testing.T) {
	w := s.world(t)
	w.start(t)
	var manifest strings.Builder
	states := make(map[string]State)
	for i := range many {
		name := fmt.Sprintf("app-%d", i)
		// One object in ten has a Pod: Pods are the machine's work, not the operator's.
		states[name] = State{Replicas: 0, Image: first.Image}
		if i%10 == 0 {
			states[name] = State{Replicas: 1, Image: first.Image}
		}
		manifest.WriteString("---\n" + w.Object(name, states[name]))
	}
	s.cluster.Kubectl(t, manifest.String(), "create", "--namespace", w.namespace, "-f", "-")
	for name, state := range states {
		w.waitUntilReady(t, name, state)
	}
	w.stop(t)
	w.requireNoErrors(t)

	writes := slices.DeleteFunc(w.proxy.Writes(), func(r yaretest.Request) bool { return r.Code == 0 })
	slices.SortFunc(writes, func(a, b yaretest.Request) int { return a.Began.Compare(b.Began) })
	parallel := 0
	var open []yaretest.Request
	for _, r := range writes {
		open = slices.DeleteFunc(open, func(before yaretest.Request) bool { return !before.Answered.After(r.Began) })
		for _, before := range open {
			if s.owner(before) == s.owner(r) {
				t.Errorf("two writes for one object at the same time: %s and %s", before, r)
			}
		}
		open = append(open, r)
		parallel = max(parallel, len(open))
	}
	if parallel < 2 {
		t.Errorf("of %d writes none were made at the same time", len(writes))
	}
	t.Logf("%d writes, up to %d at the same time, within %s", len(writes), parallel,
		slices.MaxFunc(writes, func(a, b yaretest.Request) int { return a.Answered.Compare(b.Answered) }).Answered.Sub(writes[0].Began).Round(time.Millisecond))
}

// owner returns the name of the object that a write is for: the name of the child without the
// suffix that the operator adds.
func (s *suite) owner(r yaretest.Request) string {
	name, _, _ := strings.Cut(r.Name, "-deployment")
	name, _, _ = strings.Cut(name, "-service")
	return cmp.Or(name, r.Path)
}
