package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/yare-go/yare/internal/explore/finding"
)

// allEvents returns what happened in the run, in the order of time: what the user and the faults did, the
// program's writes, and what the control plane changed.
func (r *run) allEvents() []finding.Event {
	r.traceMu.Lock()
	events := slices.Clone(r.trace)
	r.traceMu.Unlock()
	for _, request := range r.outcome.requests {
		if !request.Point.IsWrite() || !isPoint(request) {
			continue
		}
		event := finding.Event{
			At: request.Began.Sub(r.began), Step: request.Point.Step, Lane: finding.Operator, To: finding.Server,
			Text: fmt.Sprintf("%s → %d", request.Point, request.Code), Fault: request.Fault != "",
		}
		switch {
		case request.Fault != "":
			event.Text = fmt.Sprintf("%s (%s)", request.Point, request.Fault)
		case request.Code == 0:
			event.Text = fmt.Sprintf("%s (no answer)", request.Point)
		}
		event.Text += r.ofReplica(request.Session)
		events = append(events, event)
	}
	for _, v := range r.outcome.history.Versions {
		if !isControlPlane(v.Manager) && !v.Deleted {
			continue // it is the answer to a request above
		}
		what := "changes"
		if v.Deleted {
			what = "removes"
		}
		events = append(events, finding.Event{
			At: v.At.Sub(r.began), Step: v.Step, Lane: finding.Server,
			Text: fmt.Sprintf("%s %s/%s", what, v.Resource, r.names.Normalize(v.Name)),
		})
	}
	events = append(events, r.electionEvents()...)
	slices.SortStableFunc(events, func(a, b finding.Event) int { return cmp.Compare(a.At, b.At) })
	return events
}
