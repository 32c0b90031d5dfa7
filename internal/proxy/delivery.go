package proxy

import (
	"slices"
	"sync"
	"time"
)

// Delivery is something that a program received on a watch: the change of an object, or the objects with
// which a streaming list begins.
type Delivery struct {
	Session, Resource string
	// Step is the index of the step during which the program received it.
	Step int
	At   time.Time
	// Type is ADDED, MODIFIED or DELETED for the change of an object, and empty for the beginning of a
	// streaming list.
	Type string
	// Name is the name of the object that changed. It is not normalized.
	Name string
	// ResourceVersion is the version of the object that changed.
	ResourceVersion string
	// ObjectCount is the number of objects with which a streaming list begins.
	ObjectCount int
}

// deliveries records what programs receive on watches.
type deliveries struct {
	mu   sync.Mutex
	all  []Delivery
	step int
	// changes counts the changes of the step, by what the watches select.
	changes map[Selection]int
	// lastEvent is [Activity.LastEvent].
	lastEvent time.Time
	// observations are the versions of workloads in the events.
	observations []Observation
}

// record records an event that a program receives. Before the event the streaming list has delivered initialCount
// objects.
func (d *deliveries) record(x *Exchange, e Event, initialCount int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if e.IsChange && !e.IsInitial {
		d.changes[x.Selection()]++
	}
	if IsBackground(x.Resource) {
		return
	}
	if e.IsChange {
		d.lastEvent = now
		if IsWorkload(x.Resource) {
			d.observations = append(d.observations, Observation{x.Session.Name(), x.Resource, e.Name, e.ResourceVersion, now})
		}
	}
	delivery := Delivery{Session: x.Session.Name(), Resource: x.Resource, Step: d.step, At: now}
	switch {
	case e.IsInitial && !e.IsChange: // the bookmark at their end
		delivery.ObjectCount = initialCount
	case e.IsChange && !e.IsInitial:
		delivery.Type, delivery.Name, delivery.ResourceVersion = e.Type, e.Name, e.ResourceVersion
	default:
		return
	}
	d.all = append(d.all, delivery)
}

// beginStep counts changes from 0 again.
func (d *deliveries) beginStep(step int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step = step
	clear(d.changes)
}

// changeCount returns the number of changes in this step to what a watch selects.
func (d *deliveries) changeCount(s Selection) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes[s]
}

// list returns the deliveries so far, in the order of time.
func (d *deliveries) list() []Delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// lastEventTime returns when an event was delivered last.
func (d *deliveries) lastEventTime() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastEvent
}

// listObservations returns the observations on watches so far, in the order of time.
func (d *deliveries) listObservations() []Observation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.observations)
}
