package yaretest

import (
	"context"
	"errors"
	"fmt"
)

// ControlPlane stops and starts the components of a control plane, as [Cluster.Kill] and the other methods of
// [Cluster] do, outside of the goroutine of a test.
type ControlPlane interface {
	// Kill ends a component as a crash does. The component stays down until StartComponent, which returns
	// when the component is ready.
	Kill(ctx context.Context, component string) error
	StartComponent(ctx context.Context, component string) error
	// Pause freezes a component until Resume.
	Pause(ctx context.Context, component string) error
	Resume(ctx context.Context, component string) error
	// Dir returns the folder of the control plane. The data of etcd is in its subfolder etcd.
	Dir() string
}

// ControlPlane returns the control plane of c. Error: c is an existing cluster, or all tests use c.
func (c *Cluster) ControlPlane() (ControlPlane, error) {
	switch {
	case c.plane == nil:
		return nil, fmt.Errorf("the components of the existing cluster %s (%s) cannot be stopped", c.config.Host, KubeconfigVariable)
	case c.isShared:
		return nil, errors.New("all tests use the cluster of yaretest.Start: give one that yaretest.New has started")
	}
	return c.plane, nil
}
