// Command production changes the manifests of its program.
package main

import (
	"context"
	"errors"
	"flag"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// ClockSpec is the desired state of a Clock.
type ClockSpec struct {
	// Where the clock hangs.
	Wall string `json:"wall"`
}

// Definition returns the definition of Clocks.
func (ClockSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Clock"}
}

// Clock shows the time.
type Clock = kube.CustomResource[ClockSpec, kube.None]

func main() {
	var server string
	operator.Program{
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&server, "time-server", "", "the `HOST` that knows the time")
		},
		Parts: func() ([]operator.Part, error) { return []operator.Part{controller.New(reconcile)}, nil },
		BeforeRun: func(context.Context) error {
			if server == "" {
				return errors.New("--time-server is missing")
			}
			return nil
		},
		Manifests: manifests,
	}.Main()
}

func reconcile(context.Context, *Clock, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// manifests changes what installs the program: its containers know the time zone.
func manifests(m *operator.Manifests) error {
	return operator.EditManifest(m, func(d *appsv1.Deployment) {
		container := &d.Spec.Template.Spec.Containers[0]
		container.Env = append(container.Env, corev1.EnvVar{Name: "TZ", Value: "Europe/Berlin"})
	})
}
