package yaretest_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// ValveSpec is the kind of the program in testdata/policies.
type ValveSpec struct {
	Flow int `json:"flow"`
}

func (ValveSpec) Definition() kube.Definition {
	return kube.Definition{Group: "policies.yaretest.example.com", Version: "v1", Kind: "Valve"}
}

type Valve = kube.CustomResource[ValveSpec, struct{}]

// A policy that a program's manifests have is in force in the namespaces of its test, from the first object on, until the
// end of the test.
func TestApplyPolicies(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Valve](t, cluster)
	program := yaretest.Build(t, "testdata/policies")
	other := cluster.Namespace(t)
	create := func(t *testing.T, namespace string, flow int) error {
		valve := &Valve{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: ValveSpec{Flow: flow}}
		_, err := kube.Namespaced[Valve](cluster.Client(t), namespace).Create(t.Context(), valve, kube.DryRun())
		return err
	}
	namespaces := make([]string, 2)
	t.Run("tests", func(t *testing.T) {
		for i, name := range []string{"first", "second"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				namespace := cluster.Namespace(t)
				namespaces[i] = namespace
				cluster.InNamespaces(namespace).ApplyPolicies(t, program)
				if err := create(t, namespace, 100); err == nil || !strings.Contains(err.Error(), "the pipe bursts") {
					t.Errorf("%v, want the refusal of the policy", err)
				}
				if err := create(t, namespace, 99); err != nil {
					t.Error(err)
				}
				if err := create(t, other, 100); err != nil {
					t.Errorf("a policy is in force in another namespace: %v", err)
				}
			})
		}
	})
	names := cluster.Kubectl(t, "", "get", "validatingadmissionpolicy,validatingadmissionpolicybinding", "-o", "name")
	for _, namespace := range namespaces {
		if strings.Contains(names, namespace) {
			t.Errorf("a policy of %s is left: %s", namespace, names)
		}
	}
}

// A mistake in an expression, and a program without a policy, fail the test.
func TestApplyPoliciesFails(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Valve](t, cluster)
	program := yaretest.Build(t, "testdata/policies")
	namespace := cluster.Namespace(t)
	for field, want := range map[string]string{
		"flaw": `"object.spec.flaw < 100": policies.yaretest.example.com/v1, Kind=Valve: 1:12: undefined field 'flaw'`,
		"none": "prints no admission policy",
	} {
		r := record(t, "fails-"+field, func(t testing.TB) { cluster.InNamespaces(namespace).ApplyPolicies(t, program, "--field", field) })
		if failures := strings.Join(r.failures, "\n"); !strings.Contains(failures, want) {
			t.Errorf("%s: the test fails with %q, want %q", field, failures, want)
		}
	}
}
