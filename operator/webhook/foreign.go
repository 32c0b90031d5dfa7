package webhook

import (
	"context"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

// ForeignOptions say which requests API servers call a webhook of a kind of others about. Objects or Namespaces is
// required, and so is one of OnCreate, OnUpdate, OnDelete and Subresources.
//
// API servers never call about objects in the namespaces of the control plane (kube-system, kube-public,
// kube-node-lease) nor, in a cluster, in that of the program. Otherwise a program that is down could keep itself down.
type ForeignOptions struct {
	// Name makes the webhook different from another one of the same kind. It is a DNS label. Default: no name.
	Name string
	// Objects selects objects by their labels, and Namespaces selects the namespaces of the objects by the labels of the
	// namespaces. Both are written as kubectl get -l has them, such as "app=web,tier!=cache". Who makes an object chooses
	// its labels, so Objects guards nothing.
	Objects, Namespaces string
	// OnCreate, OnUpdate and OnDelete are the operations. An update counts if it changes labels, annotations, or something
	// outside of the metadata and the status. So it never blocks a finalizer. Only a validator can have OnDelete.
	OnCreate, OnUpdate, OnDelete bool
	// Subresources are further requests: status, scale and, of Pods, ephemeralcontainers, resize and eviction. The body of
	// a scale and of an eviction is another kind without labels. So only a validator without Objects can have these two.
	// Before an eviction the check gets the Pod as before, and nil as after.
	Subresources []string
	// FailBecause is the reason why requests must fail while no replica answers, or while the function fails. The reason is
	// for readers of the code. Default: such requests pass unchecked and unchanged.
	FailBecause string
	// Timeout is how long a request waits for the answer to a call, in whole seconds from 1 s to 10 s. Default: 3 s.
	Timeout time.Duration
}

// ValidateForeign returns a part by which the API server asks check before it stores or deletes an object of a kind that
// the program does not define: a kind of Kubernetes, such as corev1.Pod, or one whose Definition is Foreign.
//
//	webhook.ValidateForeign(webhook.ForeignOptions{Namespaces: "team", OnCreate: true}, checkPod)
//
// An error does what the error of a [Validate] does. Without a schema, an element of a list is the same for a warning if
// it has the same value. A panic, and a check that is too slow, do what FailBecause says. In yare dev and in tests they
// refuse the request. permissions are those of [Validate].
func ValidateForeign[T any, P kube.ObjectOf[T]](
	o ForeignOptions, check func(ctx context.Context, before, after *T, c *kube.Client) error,
	permissions ...controller.Permission,
) operator.Part {
	return newPart(admission.ForeignValidator[T, P](admission.ForeignOptions(o), check), permissions)
}

// MutateForeign returns a part by which the API server lets mutate change an object of a kind that the program does not
// define, before the server stores the object. mutate adds, changes and removes in place:
//
//	webhook.MutateForeign(webhook.ForeignOptions{Objects: "inject=yes", OnCreate: true}, inject)
//
//	func inject(_ context.Context, p *corev1.Pod, _ *kube.Client) error {
//		if !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "agent" }) {
//			p.Spec.Containers = append(p.Spec.Containers, agent())
//		}
//		return nil
//	}
//
// The API server may call mutate again for its own result. A second call that changes something is an error in yare dev
// and in tests. Fields that T lacks stay as they are. An error of mutate refuses the request, as that of a [Validate]
// does. mutate is never called for an object that is being deleted. A panic, and a function that is too slow, do what
// [ValidateForeign] says. permissions are those of [Validate].
func MutateForeign[T any, P kube.ObjectOf[T]](
	o ForeignOptions, mutate func(ctx context.Context, object *T, c *kube.Client) error,
	permissions ...controller.Permission,
) operator.Part {
	return newPart(admission.ForeignMutator[T, P](admission.ForeignOptions(o), mutate), permissions)
}
