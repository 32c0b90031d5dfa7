package operator

import (
	"slices"

	"github.com/yare-go/yare/cache"
)

// readiness knows whether a program is ready: all of its controllers have subscribed to
// their streams, each stream has been listed, and the program is not about to end.
type readiness struct {
	// controllers are the names of those that will subscribe.
	controllers []string
	subscribed  func(controller string) bool
	streams     func() []cache.Stats
	follows     *follows
	ending      func() bool
}

// missing says what the program is not ready for, a line each; nothing if it is ready.
// Once a stream has been listed it stays so: a server that is away for a while is trouble,
// but nothing that the replacement of a Pod would mend.
func (r *readiness) missing() []string {
	if r.ending() {
		return []string{"the program ends"}
	}
	var lines []string
	for _, name := range r.controllers {
		if !r.subscribed(name) {
			lines = append(lines, "the controller "+name+" has not started")
		}
	}
	for _, s := range r.streams() {
		if !s.Synced {
			lines = append(lines, s.Stream.String()+" is not synced")
		}
	}
	for _, s := range r.follows.missing() {
		lines = append(lines, s.String()+" is not synced")
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
