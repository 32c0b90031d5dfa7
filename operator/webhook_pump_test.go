package operator_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	fields "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/webhook"
)

// PumpFinalizer is the finalizer of the programs with pumps.
const PumpFinalizer = "pumps.example.com/cleanup"

// PumpWaits is what the log has when a validator begins to wait.
const PumpWaits = "the validator waits"

type pumpSpec[G interface{ Group() string }] struct {
	Size int `json:"size"`
	// Color has a default that needs code, in some releases.
	Color string `json:"color,omitempty"`
	// Act is what the validator does: panic, or wait as long as "wait 100ms" says, or wait whatever its context says
	// ("hang").
	Act string `json:"act,omitempty"`
}

func (pumpSpec[G]) Definition() kube.Definition {
	var g G
	return kube.Definition{Group: g.Group(), Version: "v1", Kind: "Pump"}
}

// Pump is a kind in a group of its own for each test that removes its definition.
type Pump[G interface{ Group() string }] = kube.CustomResource[pumpSpec[G], kube.None]

type (
	// Pumps is the group of most tests.
	Pumps struct{}
	// Uninstalled is the group of a test that uninstalls its program.
	Uninstalled struct{}
	// Everywhere is the group of a test whose program watches all namespaces.
	Everywhere struct{}
)

// Group returns the API group.
func (Pumps) Group() string { return "pumps.example.com" }

// Group returns the API group.
func (Uninstalled) Group() string { return "uninstalled.example.com" }

// Group returns the API group.
func (Everywhere) Group() string { return "everywhere.example.com" }

// pumpPrograms are the programs that this test binary can be: see [runRelease].
var pumpPrograms = map[string]func(release string) operator.Program{
	Pumps{}.Group(): pumpProgram[Pumps], Uninstalled{}.Group(): pumpProgram[Uninstalled], Everywhere{}.Group(): pumpProgram[Everywhere],
	"": injectorProgram,
}

// injectorProgram returns a program that injects a container into Pods and guards ConfigMaps, and defines no kind.
func injectorProgram(string) operator.Program {
	return operator.Program{Name: "pumps", Parts: func() ([]operator.Part, error) {
		o := webhook.ForeignOptions{Objects: "inject=yes", OnCreate: true, Timeout: 2 * time.Second}
		guarded := webhook.ForeignOptions{Objects: "guarded=yes", OnCreate: true, FailBecause: "no guarded ConfigMap may pass unchecked"}
		accept := func(context.Context, *corev1.ConfigMap, *corev1.ConfigMap, *kube.Client) error { return nil }
		return []operator.Part{webhook.MutateForeign(o, injectAgent), webhook.ValidateForeign(guarded, accept)}, nil
	}}
}

// pumpProgram returns a release of a program with pumps:
//
//	none     no webhooks
//	first    a validator that accepts sizes up to 10
//	second   a validator that accepts sizes up to 5, and a defaulter
func pumpProgram[G interface{ Group() string }](release string) operator.Program {
	type pump = Pump[G]
	parts := []operator.Part{controller.New(func(context.Context, *pump, *kube.Client) (controller.Action, error) { return controller.Done(), nil }).
		Finalizer(PumpFinalizer, func(context.Context, *pump, *kube.Client) (controller.Cleanup, error) {
			return controller.CleanupDone(), nil
		})}
	validator := func(most int) operator.Part {
		return webhook.Validate(func(ctx context.Context, _, after *pump, _ *kube.Client) error {
			if err := act(ctx, after.Spec.Act); err != nil {
				return err
			}
			if after.Spec.Size > most {
				return fields.Invalid(fields.NewPath("spec", "size"), after.Spec.Size, fmt.Sprintf("it is more than %d", most))
			}
			return nil
		})
	}
	switch release {
	case "first":
		parts = append(parts, validator(10))
	case "second":
		parts = append(parts, validator(5), webhook.Default(func(_ context.Context, p *pump) {
			if p.Spec.Color == "" {
				p.Spec.Color = "red"
			}
		}))
	}
	return operator.Program{Name: "pumps", Parts: func() ([]operator.Part, error) { return parts, nil }}
}

// act does what the field act of a pump says.
func act(ctx context.Context, text string) error {
	var wait string
	switch {
	case text == "panic":
		panic("at the pump")
	case text == "hang":
		select {}
	}
	if n, _ := fmt.Sscanf(text, "wait %s", &wait); n == 0 {
		return nil
	}
	d, err := time.ParseDuration(wait)
	if err != nil {
		return err
	}
	slog.InfoContext(ctx, PumpWaits)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}
