// Command webhooks checks and completes its own objects, and Pods.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/webhook"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// MailboxSpec is the desired state of a Mailbox.
type MailboxSpec struct {
	// The ConfigMap with the settings.
	Settings string `json:"settings"`
	// The size in GiB. It cannot shrink.
	Size int32 `json:"size" crd:"minimum=1"`
	// Who pays for it.
	Owner string `json:"owner,omitempty"`
}

// Definition returns the definition of the kind.
func (MailboxSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Mailbox", Source: source}
}

// Mailbox is a mailbox.
type Mailbox = kube.CustomResource[MailboxSpec, kube.None]

func main() {
	if len(os.Args) > 1 && os.Args[1] == "careful" { // the page shows both
		operator.Main(controller.New(reconcile), careful())
	}
	if len(os.Args) > 1 && os.Args[1] == "pods" {
		operator.Main(forPods()...)
	}
	operator.Program{Parts: parts, Manifests: addPodPolicy}.Main()
}

func parts() ([]operator.Part, error) {
	return []operator.Part{
		controller.New(reconcile),
		webhook.Validate(validate, controller.Reads[corev1.ConfigMap](wire.VerbGet)),
		webhook.Default(setDefaults),
	}, nil
}

// forPods returns webhooks of Pods, which the program does not define.
func forPods() []operator.Part {
	return []operator.Part{
		webhook.MutateForeign(webhook.ForeignOptions{Objects: "mailbox=agent", OnCreate: true}, inject),
		webhook.ValidateForeign(webhook.ForeignOptions{
			Namespaces: "mailboxes", Subresources: []string{"eviction"}, FailBecause: "an eviction can lose mail",
		}, checkEviction),
	}
}

// inject adds the agent to a Pod that does not have it.
func inject(_ context.Context, p *corev1.Pod, _ *kube.Client) error {
	isAgent := func(c corev1.Container) bool { return c.Name == "agent" }
	if !slices.ContainsFunc(p.Spec.Containers, isAgent) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "agent", Image: "registry.example.com/agent"})
	}
	return nil
}

// checkEviction refuses the eviction of a Pod that is locked. There is no Pod after an eviction.
func checkEviction(_ context.Context, before, _ *corev1.Pod, _ *kube.Client) error {
	if before.Annotations["example.com/locked"] == "true" {
		return errors.New("the Pod is locked: remove the annotation example.com/locked first")
	}
	return nil
}

// addPodPolicy adds a policy that completes the Pods of mailboxes, which are not objects of this program.
func addPodPolicy(m *operator.Manifests) error {
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "mailbox-pods"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/part-of": "mailbox"}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: "Object{spec: Object.spec{enableServiceLinks: false}}",
				},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mailbox-pods"},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "mailbox-pods"},
	}
	return errors.Join(operator.AddManifest(m, policy), operator.AddManifest(m, binding))
}

// careful returns a validator that is also asked about deletions, and about labels and annotations.
func careful() operator.Part {
	return webhook.ValidateWith(webhook.ValidateOptions{OnDelete: true, OnMetadata: true}, checkDeletion)
}

// checkDeletion refuses to delete a Mailbox that is locked.
func checkDeletion(_ context.Context, before, after *Mailbox, _ *kube.Client) error {
	if after == nil && before.Annotations["example.com/locked"] == "true" {
		return errors.New("the Mailbox is locked: remove the annotation example.com/locked first")
	}
	return nil
}

// validate refuses a Mailbox without settings, and one that shrinks.
func validate(ctx context.Context, before, after *Mailbox, c *kube.Client) error {
	spec := field.NewPath("spec")
	var errs []error
	if before != nil && after.Spec.Size < before.Spec.Size {
		errs = append(errs, field.Forbidden(spec.Child("size"), fmt.Sprintf("it cannot shrink from %d", before.Spec.Size)))
	}
	_, err := kube.Get[corev1.ConfigMap](ctx, c, after.Namespace, after.Spec.Settings)
	switch {
	case kube.IsNotFound(err):
		errs = append(errs, field.NotFound(spec.Child("settings"), after.Spec.Settings))
	case err != nil:
		return err
	}
	if after.Spec.Size > 100 {
		webhook.Warn(ctx, "a Mailbox of more than 100 GiB is slow")
	}
	return errors.Join(errs...)
}

// setDefaults makes the user who creates a Mailbox its owner.
func setDefaults(ctx context.Context, m *Mailbox) {
	if m.Spec.Owner == "" {
		m.Spec.Owner = creator(webhook.CallOf(ctx)).Name
	}
}

// creator returns the user who creates the object of a call. It returns nobody for another operation.
func creator(call webhook.Call) webhook.User {
	if call.Operation != "CREATE" {
		return webhook.User{}
	}
	return call.User
}

func reconcile(context.Context, *Mailbox, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}
