package explore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// The test of an operator, in its folder beside main.go and sample.yaml. For five minutes it runs the operator under
// faults. Each Secret must have an owner at every version, and the times in the status may differ.
func ExampleRun() {
	test := func(t *testing.T) {
		hasOwner := explore.Check{Name: "a Secret has an owner", Verify: func(s explore.State) error {
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

// A scenario in place of the samples: the user makes a ConfigMap, changes it, and deletes it. The operator runs as parts in
// the process of the test.
func ExampleSettings() {
	test := func(t *testing.T, parts func() []operator.Part) *explore.Coverage {
		var o explore.Operator = explore.Parts(parts)
		named := func(color string) []kube.Object {
			return []kube.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theme"}, Data: map[string]string{"color": color}}}
		}
		steps := []explore.Step{
			{Name: "make", Apply: named("red")}, {Name: "change", Apply: named("blue")}, {Name: "delete", Delete: named("blue")},
		}
		return explore.Run(t, o, explore.Settings{Scenario: steps, Only: []string{"crash", "watch"}})
	}
	_ = test
}

// A second exploration also stops the API server and etcd, while a spare replica of the operator waits. Only a control plane
// on this machine can be stopped.
func ExampleSettings_plane() {
	test := func(t *testing.T) {
		cluster := yaretest.New(t)
		if _, err := cluster.ControlPlane(); err != nil {
			t.Skip(err) // YARETEST_KUBECONFIG names an existing cluster
		}
		explore.Run(t, explore.Binary{Path: ".", Args: []string{"--leader-elect"}}, explore.Settings{OwnCluster: cluster})
	}
	_ = test
}

// A company has a command line of its own, which includes the command explore of yare.
func ExampleCommand() {
	tool := &cobra.Command{Use: "platform"}
	tool.AddCommand(explore.Command())
	fmt.Println(tool.Commands()[0].Name())
	// Output: explore
}
