// Package exploring holds the tests that the page of the guide about explorations shows. They belong
// into the test file of an operator, beside its sample.yaml.
package exploring

import (
	"testing"
	"time"

	"github.com/yare-go/yare/yaretest"
)

// TestExplored explores the operator in this folder.
func TestExplored(t *testing.T) {
	yaretest.Explore(t, yaretest.Binary{Path: "."})
}

// TestExploredInCI explores the operator for a bounded time.
func TestExploredInCI(t *testing.T) {
	yaretest.Explore(t, yaretest.Binary{Path: "."},
		yaretest.Budget(5*time.Minute), // begin no run after that
		yaretest.Values("spec.schedule", "0 5 * * *", "@hourly"),
		yaretest.Ignore("status.lastBackup", "it is a time"),
		yaretest.ReportTo("exploration.html"),
	)
}

// TestLeader explores an operator that elects a leader.
func TestLeader(t *testing.T) {
	yaretest.Explore(t, yaretest.Binary{Path: ".", Args: []string{"--leader-elect"}})
}

// TestOutages explores an operator whose control plane fails.
func TestOutages(t *testing.T) {
	yaretest.Explore(t, yaretest.Binary{Path: "."}, yaretest.Plane(yaretest.New(t)))
}
