package externalsystem

import "time"

// Effect is what happens to connections.
type Effect int

// The effects.
const (
	// Refuse cuts all connections, and refuses new ones for disturbance.
	Refuse Effect = iota
	// Cut cuts all connections once.
	Cut
	// Delay delays each part of data for disturbance.
	Delay
)

const (
	// disturbance is how long connections are refused or delayed.
	disturbance = 3 * time.Second
	// partDelay is the delay of a part of data.
	partDelay = 300 * time.Millisecond
)

// duration returns how long an effect lasts.
func (e Effect) duration() time.Duration {
	if e == Cut {
		return 0
	}
	return disturbance
}

// Injection is something that happens to connections. Its methods are safe for concurrent use.
type Injection struct {
	relay  *Relay
	effect Effect
	// part is the number of the part of data at which the effect begins, counted in the step from 1.
	part int
	// until is when the effect ends. It is zero before the effect has begun. relay.mu guards it.
	until time.Time
}

// HasHappened reports whether the effect has begun.
func (i *Injection) HasHappened() bool {
	i.relay.mu.Lock()
	defer i.relay.mu.Unlock()
	return !i.until.IsZero()
}
