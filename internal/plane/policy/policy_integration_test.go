package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// definition returns a definition whose spec has one field.
func definition(t *testing.T, name, field string) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.policies.example.com}
spec:
  group: policies.example.com
  names: {kind: PLURAL, plural: PLURAL}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {`+field+`: {type: integer}}}}}}}
`, "PLURAL", name)))
	if err != nil {
		t.Fatal(err)
	}
	return &objects[0]
}

// define applies a definition, and waits as yare dev does: until the definition is established.
func define(t *testing.T, client *kube.Client, name, field string) {
	t.Helper()
	definitions := kube.Dynamic(client, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		Plural:           "customresourcedefinitions", ClusterScoped: true,
	}, "")
	d := definition(t, name, field)
	if _, err := definitions.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = definitions.Delete(context.Background(), d.GetName()) })
	yaretest.WaitFor(t, definitions, d.GetName(), func(d *unstructured.Unstructured) error {
		conditions, _, _ := unstructured.NestedSlice(d.Object, "status", "conditions")
		for _, each := range conditions {
			if c, _ := each.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("it is not established")
	})
}

// policies returns a policy about a kind, with a binding for a namespace.
func policies(t *testing.T, kind, expression, namespace string) []unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Parse([]byte(strings.NewReplacer("KIND", kind, "NAMESPACE", namespace, "EXPRESSION", expression).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: KIND}
spec:
  policyName: KIND
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: KIND}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [policies.example.com], apiVersions: [v1], resources: [KIND], operations: [CREATE, UPDATE]}]}
  validations: [{expression: "EXPRESSION", messageExpression: "'the size is ' + string(object.spec.size)"}]
`)))
	if err != nil {
		t.Fatal(err)
	}
	narrowed, err := policy.Narrow(policy.Select(objects), namespace, corev1.LabelMetadataName, []string{namespace})
	if err != nil {
		t.Fatal(err)
	}
	if len(narrowed) != 2 {
		t.Fatalf("%d objects are policies, want 2", len(narrowed))
	}
	return narrowed
}

// create makes an object with a size, as a dry run.
func create(t *testing.T, client *kube.Client, kind, namespace string, size int64) error {
	t.Helper()
	_, err := tryCreate(t, client, kind, namespace, size)
	return err
}

// tryCreate makes an object with a size, as a dry run, and returns the answer.
func tryCreate(t *testing.T, client *kube.Client, kind, namespace string, size int64) (*unstructured.Unstructured, error) {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: "policies.example.com", Version: "v1", Kind: kind}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	object.SetGroupVersionKind(gvk)
	object.SetName("tried")
	return kube.Dynamic(client, wire.Resource{GroupVersionKind: gvk, Plural: kind}, namespace).Create(t.Context(), object, kube.DryRun())
}

func refuseNotes(t *testing.T) func(string) {
	return func(text string) { t.Errorf("a policy is left out: %s", text) }
}

// A policy that is checked right after its definition has an empty result, which counted as right.
func TestApplyFindsMistakes(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	define(t, client, "cogs", "size")
	err := policy.Apply(t.Context(), client, policies(t, "cogs", "object.spec.siz > 1", namespace), refuseNotes(t))
	if err == nil {
		t.Fatal("a mistake is not found")
	}
	for _, want := range []string{"cogs-" + namespace, `"object.spec.siz > 1"`, "undefined field 'siz'", "spec.validations[0].expression"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "metadata.name ==") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error shows the control, or has several lines: %v", err)
	}
	if err := create(t, client, "cogs", namespace, 0); err != nil {
		t.Errorf("a policy with a mistake is in force: %v", err)
	}
}

// The check of a policy that exists must follow a change of the definition.
func TestApplyAfterAChangeOfTheDefinition(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	define(t, client, "bolts", "size")
	same := policies(t, "bolts", "object.spec.size > 1", namespace)
	if err := policy.Apply(t.Context(), client, same, refuseNotes(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = policy.Remove(context.Background(), client, same) })
	define(t, client, "bolts", "weight")
	if err := policy.Apply(t.Context(), client, same, refuseNotes(t)); err == nil || !strings.Contains(err.Error(), "undefined field 'size'") {
		t.Errorf("%v, want the field that is gone", err)
	}
	define(t, client, "bolts", "size")
	if err := policy.Apply(t.Context(), client, same, refuseNotes(t)); err != nil {
		t.Errorf("the field is back: %v", err)
	}
}

// Apply returns when the policies are enforced, in the namespaces for which they are narrowed, until they are removed.
func TestApplyWaitsUntilPoliciesAreEnforced(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace, other := cluster.Namespace(t), cluster.Namespace(t)
	define(t, client, "nuts", "size")
	applied := policies(t, "nuts", "object.spec.size > 1", namespace)
	if err := policy.Apply(t.Context(), client, applied, refuseNotes(t)); err != nil {
		t.Fatal(err)
	}
	if err := create(t, client, "nuts", namespace, 1); err == nil || !strings.Contains(err.Error(), "the size is 1") {
		t.Errorf("%v, want the message of the policy", err)
	}
	if err := create(t, client, "nuts", namespace, 2); err != nil {
		t.Errorf("a valid object is refused: %v", err)
	}
	if err := create(t, client, "nuts", other, 1); err != nil {
		t.Errorf("an object in another namespace is refused: %v", err)
	}
	if err := policy.Remove(t.Context(), client, applied); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error { return create(t, client, "nuts", namespace, 1) })
}

// An expression that is no CEL is refused by the server, with the name of the policy and not that of the copy.
func TestApplyReportsWhatTheServerRefuses(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	define(t, client, "pins", "size")
	err := policy.Apply(t.Context(), client, policies(t, "pins", "object.spec.size >", namespace), refuseNotes(t))
	if err == nil || !strings.Contains(err.Error(), "pins-"+namespace) || !strings.Contains(err.Error(), "spec.validations[0].expression") || strings.Contains(err.Error(), "yare-type-check") {
		t.Errorf("%v, want the name of the policy, and the field", err)
	}
}

// Mutating policies have no type check. The server has observed them when Apply returns.
func TestApplyMutatingPolicies(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	objects, err := manifest.Parse([]byte(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: marks}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{data: {"mark": "seen"}}'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: marks}
spec: {policyName: marks}
---
apiVersion: admissionregistration.k8s.io/v1alpha9
kind: MutatingAdmissionPolicy
metadata: {name: future}
spec: {}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mailbox-pods}
spec:
  matchConstraints:
    objectSelector: {matchLabels: {app.kubernetes.io/part-of: mailbox}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{enableServiceLinks: false}}'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mailbox-pods}
spec: {policyName: mailbox-pods}
`))
	if err != nil {
		t.Fatal(err)
	}
	narrowed, err := policy.Narrow(policy.Select(objects), namespace, corev1.LabelMetadataName, []string{namespace})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	if err := policy.Apply(t.Context(), client, narrowed, func(text string) { notes = append(notes, text) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = policy.Remove(context.Background(), client, narrowed) })
	if len(notes) != 1 || !strings.Contains(notes[0], "future-"+namespace) {
		t.Errorf("the notes are %q, want one about the policy that is not served", notes)
	}
	made, err := kube.Namespaced[corev1.ConfigMap](client, namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Data["mark"] != "seen" {
		t.Errorf("the data is %v: the policy is not enforced", made.Data)
	}
	for part, want := range map[string]bool{"mailbox": false, "another": true} { // the policy of the guide
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: part, Labels: map[string]string{"app.kubernetes.io/part-of": part}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		}
		pod, err := kube.Namespaced[corev1.Pod](client, namespace).Create(t.Context(), pod, kube.DryRun())
		if err != nil || *pod.Spec.EnableServiceLinks != want {
			t.Errorf("a Pod of %s has enableServiceLinks %v, want %t: %v", part, pod.Spec.EnableServiceLinks, want, err)
		}
	}
}

// An API server answered the first writes of a kind that was defined a moment ago with 503, because it could not mutate
// the kind yet. A policy may name the version of the kind, or any version.
func TestApplyWaitsUntilANewKindCanBeMutated(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	for kind, version := range map[string]string{"cams": "v1", "rods": "*"} {
		define(t, client, kind, "size")
		objects, err := manifest.Parse([]byte(strings.NewReplacer("KIND", kind, "VERSION", version).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: KIND}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [policies.example.com], apiVersions: ["VERSION"], resources: [KIND], operations: [CREATE]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"size": string(object.spec.size)}}}'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: KIND}
spec: {policyName: KIND}
`)))
		if err != nil {
			t.Fatal(err)
		}
		narrowed, err := policy.Narrow(policy.Select(objects), namespace, corev1.LabelMetadataName, []string{namespace})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = policy.Remove(context.Background(), client, narrowed) })
		if err := policy.Apply(t.Context(), client, narrowed, refuseNotes(t)); err != nil {
			t.Fatal(err)
		}
		made, err := tryCreate(t, client, kind, namespace, 7)
		if err != nil {
			t.Errorf("the first %s: %v", kind, err)
		} else if made.GetLabels()["size"] != "7" {
			t.Errorf("the first %s has the labels %v: the policy is not enforced", kind, made.GetLabels())
		}
	}
}
