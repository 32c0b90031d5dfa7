package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// trace collects the events of a run. Its methods are safe for concurrent use.
type trace struct {
	began time.Time
	// step is the index of the step that runs.
	step atomic.Int64

	mu     sync.Mutex
	events []finding.Event
}

func newTrace() *trace { return &trace{began: time.Now()} }

// setStep sets the step of the following events.
func (t *trace) setStep(step int) { t.step.Store(int64(step)) }

// currentStep returns the step that runs.
func (t *trace) currentStep() int { return int(t.step.Load()) }

// record adds an event that happens now.
func (t *trace) record(event finding.Event) {
	event.At, event.Step = time.Since(t.began), t.currentStep()
	t.add(event)
}

// recordFault adds a fault that happens now.
func (t *trace) recordFault(where faults.Place, text string) {
	event := finding.Event{Lane: finding.Operator, Text: text, IsFault: true}
	switch where {
	case faults.InServer:
		event.Lane = finding.Server
	case faults.ByUser:
		event.Lane, event.To = finding.User, finding.Server
	}
	t.record(event)
}

// add adds events with their times.
func (t *trace) add(events ...finding.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, events...)
}

// all returns the events in the order of time, without most of the events of watches.
func (t *trace) all() []finding.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := slices.SortedStableFunc(slices.Values(t.events),
		func(a, b finding.Event) int { return cmp.Compare(a.At, b.At) })
	return limitWatchEvents(events)
}

// addRequests adds the writes of the program.
func (t *trace) addRequests(replicas *replicas, requests []proxy.RequestRecord) {
	for _, request := range requests {
		if !request.Point.IsWrite() || !isPoint(request) {
			continue
		}
		event := finding.Event{
			At: request.Began.Sub(t.began), Step: request.Point.Step, Lane: finding.Operator, To: finding.Server,
			Text: fmt.Sprintf("%s → %d", request.Point, request.Code), IsFault: request.Fault != "",
		}
		switch {
		case request.Fault != "":
			event.Text = fmt.Sprintf("%s (%s)", request.Point, request.Fault)
		case request.Code == 0:
			event.Text = fmt.Sprintf("%s (no answer)", request.Point)
		}
		if number := replicas.numberOf(request.Session); number > 0 {
			event.Text += fmt.Sprintf(" by replica %d", number)
		}
		t.add(event)
	}
}

// addVersions adds the changes that the control plane has made. All other versions are the answers to requests.
func (t *trace) addVersions(versions []history.Version, names *history.Names) {
	for _, v := range versions {
		if !history.IsControlPlane(v.Manager) && !v.IsDeleted {
			continue
		}
		what := "changes"
		if v.IsDeleted {
			what = "removes"
		}
		t.add(finding.Event{
			At: v.At.Sub(t.began), Step: v.Step, Lane: finding.Server,
			Text: fmt.Sprintf("%s %s/%s", what, v.Resource, names.Normalize(v.Name)),
		})
	}
}

// addElections adds when replicas have taken the lease, if there are several.
func (t *trace) addElections(replicas *replicas, requests []proxy.RequestRecord) {
	if replicas.election == nil {
		return
	}
	for _, term := range replicas.election.terms(requests) {
		number := replicas.numberOf(term.session)
		if number == 0 || term.answered.IsZero() {
			continue
		}
		t.add(finding.Event{
			At: term.answered.Sub(t.began), Step: term.step, Lane: finding.Operator, To: finding.Server,
			Text: fmt.Sprintf("replica %d takes the lease", number),
		})
	}
}

// addDeliveries adds the deliveries to the program on watches.
func (t *trace) addDeliveries(deliveries []proxy.Delivery, names *history.Names) {
	for _, d := range deliveries {
		t.add(finding.Event{
			At: d.At.Sub(t.began), Step: d.Step, Lane: finding.Server, To: finding.Operator,
			Text: describeDelivery(d, names.Normalize),
		})
	}
}

// describeDelivery returns a delivery on a watch, in a line.
func describeDelivery(d proxy.Delivery, normalize func(string) string) string {
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
	shown, omitted := make(map[int]int), make(map[int]int)
	for _, e := range events {
		last := len(limited) - 1
		switch {
		case !isOfWatch(e):
		case last >= 0 && isOfWatch(limited[last]) && limited[last].Step == e.Step && limited[last].Text == e.Text:
			times[last] = max(times[last], 1) + 1
			continue
		case shown[e.Step] == maxWatchEvents:
			omitted[e.Step]++
			continue
		default:
			shown[e.Step]++
		}
		limited = append(limited, e)
	}
	for i, n := range times {
		limited[i].Text += fmt.Sprintf(" (%d times)", n)
	}
	for step, n := range omitted {
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
