package admissionpolicy_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/serverminor"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/admissionpolicy"
	"github.com/yare-go/yare/yaretest"
)

// LampSpec is the kind of the tests.
type LampSpec struct {
	Watts int `json:"watts"`
}

func (LampSpec) Definition() kube.Definition {
	return kube.Definition{Group: "admissionpolicy.example.com", Version: "v1", Kind: "Lamp"}
}

type Lamp = kube.CustomResource[LampSpec, kube.None]

// reconcile makes a ConfigMap for a Lamp.
func reconcile(ctx context.Context, lamp *Lamp, c *kube.Client) (controller.Action, error) {
	_, err := kube.Apply(ctx, c, kube.OwnedBy(lamp, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: lamp.Namespace, Name: lamp.Name},
	}))
	return controller.Done(), err
}

// matching returns constraints for the creation of objects of a resource.
func matching(group, plural string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{plural}},
	}}}}
}

// limit returns a policy by which an expression must be true for a Lamp.
func limit(expression string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "lamp-limit"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: matching("admissionpolicy.example.com", "lamps"),
			Validations:      []admissionv1.Validation{{Expression: expression, Message: "too bright"}},
		},
	}
}

// mark returns a policy that changes objects of a resource by an expression.
func mark(name, group, plural, expression string) *admissionv1.MutatingAdmissionPolicy {
	return &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: matching(group, plural), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: expression},
			}},
		},
	}
}

const addLabel = `Object{metadata: Object.metadata{labels: {"lamp": "marked"}}}`

func parts() []operator.Part {
	return []operator.Part{
		controller.New(reconcile, controller.Owns[corev1.ConfigMap]()),
		admissionpolicy.Validating(limit("object.spec.watts <= 100")),
		admissionpolicy.Mutating(mark("lamp-maps", "", "configmaps", addLabel)),
		admissionpolicy.Mutating(mark("lamps", "admissionpolicy.example.com", "lamps", addLabel)),
	}
}

// programVariable names the program that a process of this test binary is.
const programVariable = "YARE_TEST_PROGRAM"

const (
	programOfLamps     = "lamps"
	programWithoutKind = "kindless"
	programWithTwins   = "twins"
)

func TestMain(m *testing.M) {
	switch os.Getenv(programVariable) {
	case programOfLamps:
		operator.Program{Name: "lamps", Parts: func() ([]operator.Part, error) { return parts(), nil }}.Main()
	case programWithTwins:
		operator.Program{Name: "twins", Parts: func() ([]operator.Part, error) {
			return append(parts(), admissionpolicy.Validating(limit("true"))), nil
		}}.Main()
	case programWithoutKind:
		operator.Program{Name: "kindless", Parts: func() ([]operator.Part, error) {
			return []operator.Part{
				operator.Task("wait", func(ctx context.Context, _ *controller.Runtime) error { <-ctx.Done(); return nil }),
				admissionpolicy.Mutating(mark("maps", "", "configmaps", addLabel)),
			}, nil
		}}.Main()
	}
	os.Exit(m.Run())
}

// firstMinor is the first minor version of Kubernetes that serves mutating policies in v1.
const firstMinor = 36

// skipWithoutMutatingPolicies skips t on a server that does not serve mutating policies.
func skipWithoutMutatingPolicies(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	if minor := serverminor.OfAPIs(t, cluster); minor < firstMinor {
		t.Skipf("Kubernetes 1.%d has no mutating policies in v1", minor)
	}
}

// The policies of the parts are enforced from the first object on, for a kind that was defined a moment ago, also while the
// program is stopped. They concern the namespaces of the test alone.
func TestPoliciesOfParts(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	skipWithoutMutatingPolicies(t, cluster)
	yaretest.Define[Lamp](t, cluster)
	client, namespace := cluster.Client(t), ""
	t.Run("program", func(t *testing.T) {
		namespace = cluster.Namespace(t)
		run := yaretest.RunParts(t, cluster, parts()...)
		lamp, err := kube.Namespaced[Lamp](client, namespace).Create(t.Context(),
			&Lamp{ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: LampSpec{100}})
		if err != nil {
			t.Fatal(err)
		}
		if lamp.Labels["lamp"] != "marked" {
			t.Errorf("the Lamp has the labels %v", lamp.Labels)
		}
		yaretest.WaitFor(t, kube.Namespaced[corev1.ConfigMap](client, namespace), "l", func(m *corev1.ConfigMap) error {
			if m.Labels["lamp"] != "marked" {
				return fmt.Errorf("the child has the labels %v", m.Labels)
			}
			return nil
		})
		run.Stop()
		_, err = kube.Namespaced[Lamp](client, namespace).Create(t.Context(),
			&Lamp{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: LampSpec{101}})
		if !kube.IsInvalid(err) || !strings.Contains(err.Error(), "too bright") {
			t.Errorf("while the program is stopped, a Lamp is answered with %v", err)
		}
		free, err := kube.Namespaced[corev1.ConfigMap](client, "default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lamp-free"}}, kube.DryRun())
		if err != nil {
			t.Error(err)
		} else if free.Labels["lamp"] != "" {
			t.Errorf("a ConfigMap outside of the test has the labels %v", free.Labels)
		}
	})
	if names := cluster.Kubectl(t, "", "get", "validatingadmissionpolicy,mutatingadmissionpolicy", "-o", "name"); strings.Contains(names, namespace) {
		t.Errorf("policies are left behind: %s", names)
	}
}

// A policy of an installation is enforced in the watched namespaces, and uninstall removes the policy and its binding.
func TestUninstall(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	skipWithoutMutatingPolicies(t, cluster)
	namespace := cluster.Namespace(t)
	t.Cleanup(func() {
		_, _, _ = cluster.TryKubectl(t, "", "delete", "namespace", "kindless-system", "--wait=false", "--ignore-not-found")
	})
	cluster.Kubectl(t, string(call(t, programWithoutKind, "manifests", "--image=example.com/kindless:v1", "--watch-namespace="+namespace)),
		"apply", "--server-side", "-f", "-")
	yaretest.Eventually(t, func() error {
		m, err := kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, kube.DryRun())
		if err == nil && m.Labels["lamp"] != "marked" {
			err = fmt.Errorf("the labels are %v", m.Labels)
		}
		return err
	})
	call(t, programWithoutKind, "uninstall", "--yes", "--kubeconfig", cluster.Kubeconfig(), "--watch-namespace="+namespace)
	names := cluster.Kubectl(t, "", "get", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", "-o", "name")
	if strings.Contains(names, "kindless-system") {
		t.Errorf("there are still %s", names)
	}
}

// A mistake in an expression of a part is an error before the program starts, which names the policy and the expression.
func TestMistakesInExpressions(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Lamp](t, cluster)
	mistakes := map[string]operator.Part{
		"object.spec.volts <= 100": admissionpolicy.Validating(limit("object.spec.volts <= 100")),
	}
	if serverminor.OfAPIs(t, cluster) >= firstMinor {
		mistakes["Object{metadata: object.missing"] = admissionpolicy.Mutating(mark("lamps", "admissionpolicy.example.com", "lamps", "Object{metadata: object.missing"))
	}
	for name, part := range mistakes {
		r := &failedTest{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			yaretest.RunParts(r, cluster.InNamespaces(cluster.Namespace(t)), part)
		}()
		<-ended
		if !strings.Contains(r.failure, name) || !strings.Contains(r.failure, "AdmissionPolicy lamp") {
			t.Errorf("%s: the test fails with %q", name, r.failure)
		}
	}
}

// failedTest is a test whose failure is recorded.
type failedTest struct {
	testing.TB
	failure string
}

func (f *failedTest) Fatal(args ...any) {
	f.failure = fmt.Sprint(args...)
	runtime.Goexit()
}
