package engine

import "time"

// patience is how long a run waits.
type patience struct {
	// window is how long nothing may happen at rest.
	window time.Duration
	// rest is how long the run waits for the rest after a step.
	rest time.Duration
	// heal is how long a wrong state may take to become right.
	heal time.Duration
	// delay is added to each request, for the slow reference.
	delay time.Duration
}

// confirming returns the patience of a run that confirms a finding.
func (p patience) confirming() patience {
	p.window, p.rest, p.heal = 2*p.window, 3*p.rest, 5*p.heal
	return p
}
