package cache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A subscriber that joins receives what the store holds, and then each change once. A subscription that was
// closed receives nothing.
func TestPublished(t *testing.T) {
	t.Parallel()
	s := alone(webApps)
	p := &s.published
	var got []string
	subscribe := func(name string) *Subscription {
		return &Subscription{subscriber: func(c Change) {
			got = append(got, fmt.Sprint(name, " ", c.Type, " ", c.Record().Name, " ", c.Initial))
		}}
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the changes (-want +got):\n%s", diff)
		}
		got = nil
	}
	first, second := subscribe("first"), subscribe("second")
	p.join(first, s.store)
	p.update(s.updater, changeOf(small(a, "u", "")(1)))
	check("first Added a true")
	p.join(second, s.store)
	check("second Added a true")
	first.isClosing.Store(true)
	p.update(s.updater, changeOf(small(b, "v", "")(2)))
	check("second Added b true")
	p.publish(Change{Type: DoubtSettled})
	check("second DoubtSettled  false")
	if n := len(p.subscriptions); n != 1 {
		t.Errorf("%d subscriptions are left", n)
	}
}
