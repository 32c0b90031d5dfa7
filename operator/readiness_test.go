package operator

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

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
				isEnding: func() bool { return false },
				cached:   func() []cache.Stats { return test.cached }, uncached: func() []follow.StreamState { return test.uncached },
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

// A replica was not ready before the streams of the kinds that it converts were listed. If no other replica is ready, API servers
// call nobody for the conversion that the list needs, so no replica became ready.
func TestReadinessDoesNotWaitForConvertedKinds(t *testing.T) {
	t.Parallel()
	stream := func(o kube.Object) wire.Stream {
		found, err := kube.TypeOfObject(o)
		if err != nil {
			t.Fatal(err)
		}
		return wire.Stream{Resource: found.Resource}
	}
	r := readiness{
		isEnding: func() bool { return false }, converted: map[schema.GroupKind]bool{{Group: "example.com", Kind: "Gadget"}: true},
		cached: func() []cache.Stats {
			return []cache.Stats{{Stream: stream(&gadget{})}, {Stream: stream(&certificate{})}}
		},
		uncached: func() []follow.StreamState { return []follow.StreamState{{Stream: stream(&gadget{})}} },
	}
	if got := strings.Join(r.unreadyReasons(), "\n"); got != "certificates.cert-manager.io is not synced" {
		t.Errorf("the replica is not ready because %s", got)
	}
}
