package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/proxy"
)

// allEvents returns the events of the run, in the order of time: the actions of the user and of the faults, the
// program's writes, the changes by the control plane, and the deliveries to the program on watches.
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
	for _, d := range r.outcome.deliveries {
		events = append(events, finding.Event{
			At: d.At.Sub(r.began), Step: d.Step, Lane: finding.Server, To: finding.Operator, Text: textOfDelivery(d, r.names.Normalize),
		})
	}
	slices.SortStableFunc(events, func(a, b finding.Event) int { return cmp.Compare(a.At, b.At) })
	return limitWatchEvents(events)
}

// textOfDelivery returns a delivery on a watch, in a line.
func textOfDelivery(d proxy.Delivery, normalize func(string) string) string {
	if d.Type == "" {
		return fmt.Sprintf("watch %s: begins, objects: %d", d.Resource, d.ObjectCount)
	}
	return fmt.Sprintf("watch %s: %s %s", d.Resource, d.Type, normalize(d.Name))
}

// maxWatchEvents is how many events of watches a trace has in each step.
const maxWatchEvents = 40

// limitWatchEvents returns events with fewer events of watches. Equal events without anything in between
// become one event. In each step, the events after the first maxWatchEvents are only counted.
func limitWatchEvents(events []finding.Event) (limited []finding.Event) {
	isOfWatch := func(e finding.Event) bool { return e.Lane == finding.Server && e.To == finding.Operator }
	times := make(map[int]int) // how many events the event at an index of limited stands for
	shown, left := make(map[int]int), make(map[int]int)
	for _, e := range events {
		last := len(limited) - 1
		switch {
		case !isOfWatch(e):
		case last >= 0 && isOfWatch(limited[last]) && limited[last].Step == e.Step && limited[last].Text == e.Text:
			times[last] = max(times[last], 1) + 1
			continue
		case shown[e.Step] == maxWatchEvents:
			left[e.Step]++
			continue
		default:
			shown[e.Step]++
		}
		limited = append(limited, e)
	}
	for i, n := range times {
		limited[i].Text += fmt.Sprintf(" (%d times)", n)
	}
	for step, n := range left {
		end := len(limited)
		for end > 0 && limited[end-1].Step > step {
			end--
		}
		at := limited[end-1].At
		limited = slices.Insert(limited, end, finding.Event{
			At: at, Step: step, Lane: finding.Server, To: finding.Operator, Text: fmt.Sprintf("%d more events of watches", n),
		})
	}
	return limited
}
