// Command widget-operator runs the operator of Widgets: it writes the text of each Widget into a ConfigMap.
package main

import (
	"context"
	"embed"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/secure"
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
	// Ready is True once the ConfigMap has the text.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

func (WidgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "template.example.com", Version: "v1", Kind: "Widget", Source: source}
}

// Widget is a text in a ConfigMap.
type Widget = kube.CustomResource[WidgetSpec, WidgetStatus]

func main() {
	operator.Program{
		Name: "widget-operator",
		Parts: func() ([]operator.Part, error) {
			return []operator.Part{newController(), secure.New(), events.New("widget-operator")}, nil
		},
	}.Main()
}

func newController() operator.Part {
	return controller.New(reconcile, controller.Owns[corev1.ConfigMap]())
}

// reconcile makes the ConfigMap as the Widget asks for it. It runs when either of them changes.
func reconcile(ctx context.Context, o *Widget, c *kube.Client) (controller.Action, error) {
	_, err := kube.Apply(ctx, c, kube.OwnedBy(o, configMap(o)))
	if err != nil {
		return controller.Done(), err // it runs again later
	}
	kube.SetCondition(ctx, &o.Status.Conditions, o, "Ready", true, "Written", "the ConfigMap has the text")
	return controller.Done(), c.ApplyStatus(ctx, o)
}

// configMap returns the desired ConfigMap of o.
func configMap(o *Widget) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: map[string]string{
			"app.kubernetes.io/name":       "widget",
			"app.kubernetes.io/instance":   o.Name,
			"app.kubernetes.io/managed-by": "widget-operator",
		}},
		Data: map[string]string{"text": o.Spec.Text},
	}
}
