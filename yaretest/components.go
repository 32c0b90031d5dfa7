package yaretest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// The components that can be stopped, in a control plane of [New]. On an existing cluster (see
// YARETEST_KUBECONFIG) the functions that act on components skip the test.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

// Stop ends a component as an administrator would. It stays down until StartComponent.
func (c *Cluster) Stop(t testing.TB, component string) {
	c.controlComponent(t, "stop", component, (*plane.Plane).Stop)
}

// Kill ends a component as a crash would. It stays down until StartComponent.
func (c *Cluster) Kill(t testing.TB, component string) {
	c.controlComponent(t, "kill", component, (*plane.Plane).Kill)
}

// StartComponent starts a component that was stopped or killed, and waits until it is ready.
func (c *Cluster) StartComponent(t testing.TB, component string) {
	c.controlComponent(t, "start", component, (*plane.Plane).StartComponent)
}

// Restart stops a component and starts it again, and waits until it is ready.
func (c *Cluster) Restart(t testing.TB, component string) {
	c.controlComponent(t, "restart", component, (*plane.Plane).Restart)
}

// Pause freezes a component until Resume. It keeps its connections and answers nothing.
func (c *Cluster) Pause(t testing.TB, component string) {
	c.controlComponent(t, "pause", component, (*plane.Plane).Pause)
}

// Resume ends a Pause.
func (c *Cluster) Resume(t testing.TB, component string) {
	c.controlComponent(t, "resume", component, (*plane.Plane).Resume)
}

// controlComponent calls action, a method of the control plane, with a component. verb names the action in errors.
func (c *Cluster) controlComponent(
	t testing.TB, verb, component string, action func(*plane.Plane, context.Context, string) error,
) {
	t.Helper()
	c.skipIfExisting(t, verb+" the "+component)
	// This is not the test's own context, because a Cleanup may repair what the test broke.
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeoutOf(t))
	defer cancel()
	if err := action(c.plane, ctx, component); err != nil {
		t.Fatalf("%s %s: %v", verb, component, err)
	}
}

// Compact drops etcd's history. The API server keeps some of it in memory until it is
// restarted.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	c.skipIfExisting(t, "compact the etcd")
	if _, err := c.plane.Compact(t.Context()); err != nil {
		t.Fatalf("compact etcd: %v", err)
	}
}

// ControlPlane returns the control plane of c for package explore, which stops and starts components outside of the
// goroutine of a test. Tests use [Cluster.Kill] and the methods beside it. Error: c is an existing cluster, or all
// tests use c.
func (c *Cluster) ControlPlane() (faults.Components, error) {
	switch {
	case c.plane == nil:
		return nil, fmt.Errorf("the components of the existing cluster %s (%s) cannot be stopped",
			c.config.Host, kubeconfigVariable)
	case c.isShared:
		return nil, errors.New("all tests use the cluster of yaretest.Shared: give one that yaretest.New has started")
	}
	return c.plane, nil
}
