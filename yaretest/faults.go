package yaretest

import (
	"context"
	"testing"
)

// The components that can be stopped, in a control plane that [New] started.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

// Stop ends a component as an administrator would. It stays down until StartComponent.
func (c *Cluster) Stop(t testing.TB, component string) {
	c.steer(t, "stop", component, c.plane.Stop)
}

// Kill ends a component as a crash would. It stays down until StartComponent.
func (c *Cluster) Kill(t testing.TB, component string) {
	c.steer(t, "kill", component, c.plane.Kill)
}

// StartComponent starts a component that was stopped or killed, and waits until it is ready.
func (c *Cluster) StartComponent(t testing.TB, component string) {
	c.steer(t, "start", component, c.plane.StartComponent)
}

// Restart stops a component and starts it again, and waits until it is ready.
func (c *Cluster) Restart(t testing.TB, component string) {
	c.steer(t, "restart", component, c.plane.Restart)
}

// Pause freezes a component until Resume. It keeps its connections and answers nothing.
func (c *Cluster) Pause(t testing.TB, component string) {
	c.steer(t, "pause", component, c.plane.Pause)
}

// Resume ends a Pause.
func (c *Cluster) Resume(t testing.TB, component string) {
	c.steer(t, "resume", component, c.plane.Resume)
}

func (c *Cluster) steer(t testing.TB, verb, component string, do func(context.Context, string) error) {
	t.Helper()
	// This is not the test's own context, because a Cleanup may repair what the test broke.
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeoutOf(t))
	defer cancel()
	if err := do(ctx, component); err != nil {
		t.Fatalf("%s %s: %v", verb, component, err)
	}
}

// Compact drops etcd's history. The API server keeps some of it in memory until it is
// restarted.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	if _, err := c.plane.Compact(t.Context()); err != nil {
		t.Fatalf("compact etcd: %v", err)
	}
}
