package proxy

import (
	"net/http"
	"sync"
)

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
		exchange: x, gate: w.gate, deliveries: w.deliveries, body: response.Body, onClose: w.remove, requestDone: r.Context().Done(),
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
