package proxy

import (
	"net/http"
	"sync"
)

// Gate decides when programs receive the events of their watches. It is safe for concurrent use.
type Gate interface {
	// Decide decides on the next event of a watch. Leases and Events have watches, too.
	Decide(x *Exchange, e Event) Decision
}

// Decision is what happens to an event of a watch. The zero Decision delivers the event.
type Decision struct {
	// Until holds the event, and all that follow, until the channel is closed. Then the gate decides again.
	Until <-chan struct{}
	// Break is called if it is not nil. Then the watch is cut, and the event is not delivered. Both happen at once, or
	// after Until.
	Break func()
	// DeliversTwice is true if the event is delivered twice.
	DeliversTwice bool
}

// IsDelivery reports whether the event is delivered once.
func (d Decision) IsDelivery() bool { return d.Until == nil && d.Break == nil && !d.DeliversTwice }

// Watches is a [Hook] that passes each watch through a gate, event by event, and records what programs receive.
type Watches struct {
	gate       Gate
	deliveries *deliveries

	mu   sync.Mutex
	open map[*watch]struct{}
}

// NewWatches returns a hook with a gate.
func NewWatches(g Gate) *Watches {
	return &Watches{gate: g, deliveries: &deliveries{step: -1, changes: map[Selection]int{}}, open: map[*watch]struct{}{}}
}

// RoundTrip implements [Hook].
func (w *Watches) RoundTrip(x *Exchange, r *http.Request, next Next) (*http.Response, error) {
	response, err := next(r)
	if err != nil || response.StatusCode != http.StatusOK || !x.IsWatch() {
		return response, err
	}
	opened := &watch{
		exchange: x, gate: w.gate, deliveries: w.deliveries, body: response.Body,
		onClose: w.remove, requestDone: r.Context().Done(),
		readerDone: make(chan struct{}), arrived: make(chan struct{}, 1),
	}
	w.mu.Lock()
	w.open[opened] = struct{}{}
	w.mu.Unlock()
	go opened.readServer()
	response.Body, response.ContentLength = opened, -1
	return response, nil
}

// remove removes a watch that has ended.
func (w *Watches) remove(ended *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, ended)
}

// BeginStep begins a step of the user, in which [Event.EarlierChanges] counts from 0.
func (w *Watches) BeginStep(step int) { w.deliveries.beginStep(step) }

// Deliveries returns the deliveries to programs on watches so far, in the order of time. Leases and
// Events are left out.
func (w *Watches) Deliveries() []Delivery {
	return w.deliveries.list()
}

// Observations returns the observations on watches so far, in the order of time.
func (w *Watches) Observations() []Observation { return w.deliveries.listObservations() }

// AddActivity adds the activity of the watches to the activity of the requests.
func (w *Watches) AddActivity(a *Activity) {
	a.LastEvent = w.deliveries.lastEventTime()
	w.mu.Lock()
	defer w.mu.Unlock()
	for each := range w.open {
		if IsBackground(each.exchange.Resource) {
			continue
		}
		held, isBehind := each.state()
		a.Held += held
		if isBehind {
			a.StreamsBehind++
		}
	}
}
