package proxy

// Gate decides when programs receive the events of their watches. It is safe for concurrent use.
type Gate interface {
	// Decide decides on the next event of a watch. Leases and Events have watches, too.
	Decide(x *Exchange, e Event) Decision
}

// Decision is what happens to an event of a watch. The zero Decision delivers the event.
type Decision struct {
	// Until holds the event, and all that follow, until the channel is closed. Then the gate decides again.
	Until <-chan struct{}
	// Break is called if it is not nil. Then the watch is cut, and the event is not delivered. Both happen at once, or after Until.
	Break func()
	// DeliversTwice is true if the event is delivered twice.
	DeliversTwice bool
}

// IsDelivery reports whether the event is delivered once.
func (d Decision) IsDelivery() bool { return d.Until == nil && d.Break == nil && !d.DeliversTwice }
