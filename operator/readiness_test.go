package operator

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A namespace that cannot be listed does not keep a program from being ready that works in another namespace. A kind that cannot
// be listed in any namespace does.
func TestReadinessLeavesNamespacesOut(t *testing.T) {
	t.Parallel()
	found, err := kube.TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	in := func(namespace string) wire.Stream { return wire.Stream{Resource: found.Resource, Namespace: namespace} }
	labelled := in("shop")
	labelled.LabelSelector = "a=b"
	for name, test := range map[string]struct {
		cached            []cache.Stats
		uncached          []follow.StreamState
		unready, leftOuts string
	}{
		"all synced": {cached: []cache.Stats{{Stream: in("shop"), Synced: true}, {Stream: in("lab"), Synced: true}}},
		"one is forbidden": {
			cached:   []cache.Stats{{Stream: in("shop"), Synced: true}, {Stream: in("lab"), Unlisted: true}},
			leftOuts: "gadgets.example.com in namespace \"lab\" is left out, because it cannot be listed",
		},
		"one is not listed yet": {
			cached:  []cache.Stats{{Stream: in("shop"), Synced: true}, {Stream: in("lab")}},
			unready: "gadgets.example.com in namespace \"lab\" is not synced",
		},
		"all are forbidden": {
			cached:  []cache.Stats{{Stream: in("shop"), Unlisted: true}, {Stream: in("lab"), Unlisted: true}},
			unready: "gadgets.example.com in namespace \"lab\" is not synced\ngadgets.example.com in namespace \"shop\" is not synced",
		},
		"another selection is synced": {
			cached:  []cache.Stats{{Stream: labelled, Synced: true}, {Stream: in("lab"), Unlisted: true}},
			unready: "gadgets.example.com in namespace \"lab\" is not synced",
		},
		"a part without the cache": {
			uncached: []follow.StreamState{{Stream: in("shop"), Synced: true}, {Stream: in("lab"), Unlisted: true}},
			leftOuts: "gadgets.example.com in namespace \"lab\" is left out, because it cannot be listed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := readiness{
				isEnding: func() bool { return false }, webhooks: unservedWebhooks{},
				cached: func() []cache.Stats { return test.cached }, uncached: func() []follow.StreamState { return test.uncached },
			}
			if got := strings.Join(r.unreadyReasons(), "\n"); got != test.unready {
				t.Errorf("the program is not ready because of %q, not %q", got, test.unready)
			}
			if got := strings.Join(r.leftOutLines(), "\n"); got != test.leftOuts {
				t.Errorf("left out: %q, not %q", got, test.leftOuts)
			}
		})
	}
}
