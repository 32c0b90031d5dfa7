package explore_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/explore"
)

// The test of an operator, in its folder beside main.go and sample.yaml. For five minutes it runs the operator under
// faults. Each Secret must have an owner at every version, and the times in the status may differ.
func ExampleRun() {
	test := func(t *testing.T) {
		hasOwner := explore.Check{Name: "a Secret has an owner", Holds: func(s explore.State) error {
			for _, secret := range explore.Objects[corev1.Secret](s) {
				if len(secret.OwnerReferences) == 0 {
					return fmt.Errorf("%s has none", secret.Name)
				}
			}
			return nil
		}}
		coverage := explore.Run(t, explore.Binary{Path: "."}, explore.Settings{
			Budget:     5 * time.Minute,
			Always:     []explore.Check{hasOwner},
			Ignore:     map[string]string{"status.lastBackup": "it is a time"},
			ReportFile: "exploration.html",
		})
		if coverage.Kinds["crash"] == (explore.Count{}) {
			t.Error("no run had a crash: the operator made no write")
		}
	}
	_ = test // go test calls it as TestExplored
}
