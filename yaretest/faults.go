package yaretest

import (
	"context"
	"testing"
)

// The parts of a control plane that can be stopped, of one that [New] started.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

// Stop ends a part as an administrator would; it stays down until StartPart.
func (c *Cluster) Stop(t testing.TB, part string) {
	c.steer(t, "stop", part, c.plane.Stop)
}

// Kill ends a part as a crash would; it stays down until StartPart.
func (c *Cluster) Kill(t testing.TB, part string) {
	c.steer(t, "kill", part, c.plane.Kill)
}

// StartPart starts what was stopped or killed, and waits until it is ready.
func (c *Cluster) StartPart(t testing.TB, part string) {
	c.steer(t, "start", part, c.plane.StartComponent)
}

// Restart stops a part and starts it again.
func (c *Cluster) Restart(t testing.TB, part string) {
	c.steer(t, "restart", part, c.plane.Restart)
}

// Pause freezes a part: it keeps its connections and answers nothing, until Resume.
func (c *Cluster) Pause(t testing.TB, part string) {
	c.steer(t, "pause", part, c.plane.Pause)
}

// Resume ends a Pause.
func (c *Cluster) Resume(t testing.TB, part string) {
	c.steer(t, "resume", part, c.plane.Resume)
}

func (c *Cluster) steer(t testing.TB, verb, part string, do func(context.Context, string) error) {
	t.Helper()
	// Not the test's own context: what it broke it may mend in a Cleanup.
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := do(ctx, part); err != nil {
		t.Fatalf("%s %s: %v", verb, part, err)
	}
}

// Compact makes etcd forget its history. The API server goes on remembering some of it
// until it is restarted.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	if _, err := c.plane.Compact(t.Context()); err != nil {
		t.Fatalf("compact etcd: %v", err)
	}
}
