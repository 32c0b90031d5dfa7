// Package exploring holds the tests that the page of the guide about explorations shows. They belong
// into the test file of an operator, beside its sample.yaml.
package exploring

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// TestExplored explores the operator in this folder for a bounded time.
func TestExplored(t *testing.T) {
	explore.Run(t, explore.Binary{Path: "."}, explore.Settings{Budget: 5 * time.Minute})
}

// TestOwners makes a check of its own at every version of every object.
func TestOwners(t *testing.T) {
	hasOwner := explore.Check{Name: "a Secret has an owner", Verify: func(s explore.State) error {
		for _, secret := range explore.Objects[corev1.Secret](s) {
			if len(secret.OwnerReferences) == 0 {
				return fmt.Errorf("%s has none", secret.Name)
			}
		}
		return nil
	}}
	explore.Run(t, explore.Binary{Path: "."}, explore.Settings{Always: []explore.Check{hasOwner}})
}

// TestAgain replays what an earlier exploration has found.
func TestAgain(t *testing.T) {
	parts := func() []operator.Part { return nil }
	explore.Run(t, explore.Parts(parts), explore.Settings{ReplayFile: "found.json"})
}

// TestIntended leaves out what is intended.
func TestIntended(t *testing.T) {
	explore.Run(t, explore.Binary{Path: "."}, explore.Settings{
		Budget:     5 * time.Minute, // begin no run after that
		Values:     map[string][]any{"spec.schedule": {"0 5 * * *", "@hourly"}},
		Ignore:     map[string]string{"status.lastBackup": "it is a time"},
		AcceptFile: "accept.yaml",
		ReportFile: "exploration.html",
	})
}

// TestLeader explores an operator that elects a leader.
func TestLeader(t *testing.T) {
	explore.Run(t, explore.Binary{Path: ".", Args: []string{"--leader-elect"}}, explore.Settings{})
}

// TestOutages explores an operator whose control plane fails.
func TestOutages(t *testing.T) {
	explore.Run(t, explore.Binary{Path: "."}, explore.Settings{OwnCluster: yaretest.New(t)})
}
