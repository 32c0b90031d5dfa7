package engine

import (
	"context"

	"github.com/yare-go/yare/explore/internal/outside"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Outside is the external system of an operator.
type Outside struct {
	// Address is the address of the system, as host:port. The program reaches the system by another address, that of a relay
	// of the exploration. Default: no faults of connections.
	Address string
	// Look returns a text about what the run of a namespace has in the system. The lines are compared between runs. Default:
	// the system is not compared.
	Look func(ctx context.Context, namespace string) (string, error)
	// Empty removes what the run of a namespace has left in the system. Default: nothing is removed.
	Empty func(ctx context.Context, namespace string) error
}

// outsideConnections are the connections of a run to the external system. They are a [faults.Outside].
type outsideConnections struct {
	*outside.Relay
	injected *outside.Injection
}

// newOutsideConnections starts the relay of a run.
func newOutsideConnections(address string) (*outsideConnections, error) {
	r, err := outside.Listen(address)
	if err != nil {
		return nil, err
	}
	return &outsideConnections{Relay: r}, nil
}

// Inject implements [faults.Outside].
func (c *outsideConnections) Inject(k faults.Kind, part int) {
	effects := map[faults.Kind]outside.Effect{
		faults.OutsideRefused: outside.Refuse, faults.OutsideCut: outside.Cut, faults.OutsideSlow: outside.Delay,
	}
	c.injected = c.Relay.Inject(effects[k], part)
}

// HasHappened implements [faults.Outside].
func (c *outsideConnections) HasHappened() bool { return c.injected != nil && c.injected.HasHappened() }
