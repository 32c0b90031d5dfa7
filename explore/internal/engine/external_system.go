package engine

import (
	"context"

	"github.com/yare-go/yare/explore/internal/externalsystem"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// ExternalSystem is the external system of an operator.
type ExternalSystem struct {
	// Address is the address of the system, as host:port. The program reaches the system by another address, that of a
	// relay of the exploration. Default: no faults of connections.
	Address string
	// Look returns a text about what the run of a namespace has in the system. The lines are compared between runs.
	// Default: the system is not compared.
	Look func(ctx context.Context, namespace string) (string, error)
	// Empty removes what the run of a namespace has left in the system. Default: nothing is removed.
	Empty func(ctx context.Context, namespace string) error
}

// externalConnections are the connections of a run to the external system. They are a [faults.ExternalConnections].
type externalConnections struct {
	*externalsystem.Relay
	injected *externalsystem.Injection
}

// newExternalConnections starts the relay of a run.
func newExternalConnections(address string) (*externalConnections, error) {
	r, err := externalsystem.Listen(address)
	if err != nil {
		return nil, err
	}
	return &externalConnections{Relay: r}, nil
}

// Inject implements [faults.ExternalConnections].
func (c *externalConnections) Inject(k faults.Kind, part int) {
	effects := map[faults.Kind]externalsystem.Effect{
		faults.OutsideRefused: externalsystem.Refuse, faults.OutsideCut: externalsystem.Cut,
		faults.OutsideSlow: externalsystem.Delay,
	}
	c.injected = c.Relay.Inject(effects[k], part)
}

// HasHappened implements [faults.ExternalConnections].
func (c *externalConnections) HasHappened() bool {
	return c.injected != nil && c.injected.HasHappened()
}
