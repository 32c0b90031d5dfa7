package operator

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/readycheck"
)

// readiness decides whether a program is ready: all of its controllers have subscribed to
// their streams, each stream has been listed or is left out, and the program is not about to end.
type readiness struct {
	// controllers holds the names of all controllers.
	controllers  []string
	isSubscribed func(controller string) bool
	// cached returns the streams of the cache.
	cached func() []cache.Stats
	// uncached returns the streams that parts follow without the cache.
	uncached func() []follow.StreamState
	isEnding func() bool
	// election is the leader election of the program. It may be nil. A standby can be ready like a
	// leader: an update that replaces the Pods of a program waits for the readiness of new Pods.
	election *leaderElection
	features features
	// converted are the kinds that the program converts. The first list of such a kind can need a conversion, and API
	// servers call only Pods that are ready.
	converted map[schema.GroupKind]bool
	// checks are those of the author.
	checks readycheck.Checks
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
	lines = append(lines, r.features.unreadyReasons()...)
	unsynced, _ := r.unsyncedStreams()
	for _, s := range unsynced {
		if !r.isConverted(s) {
			lines = append(lines, s.String()+" is not synced")
		}
	}
	lines = append(lines, r.checks.Failures()...)
	slices.Sort(lines)
	return slices.Compact(lines)
}

// unsyncedStreams returns the streams that the program waits for, and the streams that are left out. A stream is left
// out if it may not be listed for long, and the same objects of another namespace have been listed: a namespace that
// cannot be read, such as one that was deleted with its Role, does not stop the work elsewhere.
//
// For example, the program watches webapps in shop and in lab. The server forbids the list in lab. While the list in
// shop is under way, both streams are unsynced. Once that list is complete, the stream in lab is left out.
func (r *readiness) unsyncedStreams() (unsynced, leftOut []wire.Stream) {
	states := r.uncached()
	for _, s := range r.cached() {
		states = append(states, follow.StreamState{Stream: s.Stream, Synced: s.Synced, Unlisted: s.Unlisted})
	}
	for _, s := range states {
		isSyncedElsewhere := func(other follow.StreamState) bool {
			other.Stream.Namespace = s.Stream.Namespace
			return other.Synced && other.Stream == s.Stream
		}
		switch {
		case s.Synced:
		case s.Unlisted && slices.ContainsFunc(states, isSyncedElsewhere):
			leftOut = append(leftOut, s.Stream)
		default:
			unsynced = append(unsynced, s.Stream)
		}
	}
	return unsynced, leftOut
}

// leftOutLines returns a line for each stream that is left out.
func (r *readiness) leftOutLines() (lines []string) {
	_, leftOut := r.unsyncedStreams()
	for _, s := range leftOut {
		lines = append(lines, s.String()+" is left out, because it cannot be listed")
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// isConverted reports whether the program converts the objects of a stream.
func (r *readiness) isConverted(s wire.Stream) bool { return r.converted[s.Resource.GroupKind()] }
