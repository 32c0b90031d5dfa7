package operator

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube/wire"
)

// readiness decides whether a program is ready: all of its controllers have subscribed to
// their streams, each stream has been listed, and the program is not about to end.
type readiness struct {
	// controllers holds the names of all controllers.
	controllers  []string
	isSubscribed func(controller string) bool
	// cached returns the streams of the cache.
	cached func() []cache.Stats
	// unsynced returns the streams not yet listed, of the streams that parts follow without the cache.
	unsynced func() []wire.Stream
	isEnding func() bool
	// election is the leader election of the program. It may be nil. A standby can be ready like a
	// leader: an update that replaces the Pods of a program waits for the readiness of new Pods.
	election *leaderElection
	webhooks webhookService
	// converted are the kinds that the program converts. The first list of such a kind can need a conversion, and API servers
	// call only Pods that are ready.
	converted map[schema.GroupKind]bool
}

// unreadyReasons returns the reasons why the program is not ready, or nothing if it is ready. A stream stays synced
// after its first list. An unreachable server is a problem, but the replacement of a Pod would not solve it.
func (r *readiness) unreadyReasons() []string {
	if r.isEnding() {
		return []string{"the program ends"}
	}
	var lines []string
	for _, name := range r.controllers {
		if !r.isSubscribed(name) {
			lines = append(lines, "the controller "+name+" has not started")
		}
	}
	if r.election != nil {
		if text := r.election.unreadyReason(); text != "" {
			lines = append(lines, text)
		}
	}
	lines = append(lines, r.webhooks.unreadyReasons()...)
	for _, s := range r.cached() {
		if !s.Synced && !r.isConverted(s.Stream) {
			lines = append(lines, s.Stream.String()+" is not synced")
		}
	}
	for _, s := range r.unsynced() {
		if !r.isConverted(s) {
			lines = append(lines, s.String()+" is not synced")
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// isConverted reports whether the program converts the objects of a stream.
func (r *readiness) isConverted(s wire.Stream) bool { return r.converted[s.Resource.GroupKind()] }
