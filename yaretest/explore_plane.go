package yaretest

import (
	"errors"
	"fmt"
)

// Plane explores on c in place of the cluster of [Start], and adds faults that stop components of the
// control plane: the API server and etcd are killed and started again, and etcd is paused, at some writes
// of the program and after each step. These runs come after all others, one at a time. The cluster must be
// one that [New] has started and that nobody else uses meanwhile.
//
//	yaretest.Explore(t, yaretest.Binary{Path: "."}, yaretest.Plane(yaretest.New(t)))
func Plane(c *Cluster) ExploreOption {
	return func(e *exploration) error {
		switch {
		case c == nil:
			return errors.New("the cluster of yaretest.Plane is nil: give one that yaretest.New has started")
		case c.plane == nil:
			return fmt.Errorf("yaretest.Plane stops the API server and etcd, and cannot do so in the existing cluster %s (%s)", c.config.Host, KubeconfigVariable)
		case c.isShared:
			return errors.New("yaretest.Plane stops the API server and etcd, and all tests use the cluster of yaretest.Start: give one that yaretest.New has started")
		}
		e.cluster, e.options.Plane = c, c.plane
		return nil
	}
}
