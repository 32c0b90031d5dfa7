// Command widget-operator runs the operator of Widgets: it writes the text of each Widget into a
// ConfigMap, and renews the ConfigMap every hour.
package main

import (
	"context"
	"embed"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed main.go
var source embed.FS // the comments in it describe the resource to its users

// WidgetSpec is what users ask for.
type WidgetSpec struct {
	// The text in the ConfigMap.
	Text string `json:"text" crd:"minLength=1,column"`
}

// WidgetStatus is what the operator has done.
type WidgetStatus struct {
	// When the ConfigMap was renewed for the last time.
	RenewedAt metav1.Time `json:"renewedAt"`
	// Ready is True once the ConfigMap has the text.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (WidgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "template.example.com", Version: "v1", Kind: "Widget", Source: source}
}

// Widget is a text in a ConfigMap.
type Widget = kube.CustomResource[WidgetSpec, WidgetStatus]

// renewal is the time from one renewal to the next.
const renewal = time.Hour

func main() { operator.Main(parts()...) }

func parts() []operator.Part {
	return []operator.Part{controller.New(reconcile, controller.Owns[corev1.ConfigMap]())}
}

func reconcile(ctx context.Context, o *Widget, c *kube.Client) (controller.Action, error) {
	now := controller.Now(ctx) // which a test can move
	if now.Sub(o.Status.RenewedAt.Time) >= renewal {
		o.Status.RenewedAt = metav1.NewTime(now.Truncate(time.Second))
	}
	_, err := kube.Apply(ctx, c, kube.OwnedBy(o, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
		Data:       map[string]string{"text": o.Spec.Text, "renewedAt": o.Status.RenewedAt.UTC().Format(time.RFC3339)},
	}))
	if err != nil {
		return controller.Done(), err
	}
	kube.SetCondition(&o.Status.Conditions, o, "Ready", true, "Written", "the ConfigMap has the text")
	return controller.RequeueAfter(o.Status.RenewedAt.Add(renewal).Sub(now)), c.ApplyStatus(ctx, o)
}
