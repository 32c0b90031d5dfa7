package faults

import (
	"slices"
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
	// ObjectCount is the number of objects with which a streaming list begins.
	ObjectCount int
}

// Deliveries returns the deliveries to programs on watches so far, in the order of time. Leases and
// Events are left out.
func (p *Proxy) Deliveries() []Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.deliveries)
}

// recordDeliveryLocked records a frame that the program receives.
func (p *Proxy) recordDeliveryLocked(s *stream, f frame) {
	if s.exchange.isBackground() {
		return
	}
	d := Delivery{Session: s.exchange.session.name, Resource: s.exchange.parsed.Resource, Step: p.step, At: time.Now()}
	switch {
	case f.isInitial && f.isChange:
		s.initialCount++
		return
	case f.isInitial: // the bookmark at their end
		d.ObjectCount = s.initialCount
	case f.isChange:
		d.Type, d.Name = f.eventType, f.name
	default:
		return
	}
	p.deliveries = append(p.deliveries, d)
}
