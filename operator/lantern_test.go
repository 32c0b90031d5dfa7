package operator_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/internal/feature/metrics"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/operator/internal/calls"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/webhook"
)

// The kind Lantern is stored in v1. Only v1 has a note. A colour with the name panic makes the function to v2 panic.
type (
	LanternSpec1 struct {
		Colour string `json:"colour,omitempty"`
		Note   string `json:"note,omitempty"`
	}
	LanternSpec2 struct {
		Hue string `json:"hue,omitempty"`
	}
	Lantern1 = kube.CustomResource[LanternSpec1, kube.None]
	Lantern2 = kube.CustomResource[LanternSpec2, kube.None]
)

func (LanternSpec1) Definition() kube.Definition {
	return kube.Definition{Group: "lanterns.versions.example.com", Version: "v1", Kind: "Lantern", Storage: true}
}

func (LanternSpec2) Definition() kube.Definition {
	return kube.Definition{Group: "lanterns.versions.example.com", Version: "v2", Kind: "Lantern"}
}

// lanternConverter is the converter of Lanterns.
func lanternConverter() operator.Part {
	return conversion.Between(func(a *Lantern1, b *Lantern2) {
		if a.Spec.Colour == "panic" {
			panic("this colour is not known")
		}
		b.Spec.Hue = a.Spec.Colour
	}, func(b *Lantern2, a *Lantern1) { a.Spec.Colour = b.Spec.Hue })
}

// runLanterns is a program with a converter, and with a controller on the storage version.
func runLanterns() {
	operator.Main(lanternConverter(), controller.New(reconcileLantern1))
}

func reconcileLantern1(context.Context, *Lantern1, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

func reconcileLantern2(context.Context, *Lantern2, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// A controller that does not use the storage version costs conversions. In yare dev and in tests the log says so.
func TestWarningOfAControllerOnAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		part operator.Part
		want string
	}{
		"stored": {controller.New(reconcileLantern1), ""},
		"other":  {controller.New(reconcileLantern2), "kind=Lantern.lanterns.versions.example.com version=v2 stored=v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := []operator.Part{lanternConverter(), test.part}
			var log bytes.Buffer
			s := newService(slog.New(slog.NewTextHandler(&log, nil)))
			s.Program.IsStrict = true
			if err := handlerOf(t, s.Program, parts...).Prepare(s); err != nil {
				t.Fatal(err)
			}
			if text := log.String(); (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the log is %q", text)
			}
		})
	}
}

type (
	scaledLantern1 struct {
		Replicas int32 `json:"replicas,omitempty"`
	}
	scaledLantern2 struct {
		Count int32 `json:"count,omitempty"`
	}
)

func (scaledLantern1) Definition() kube.Definition {
	return kube.Definition{Group: "scaled.example.com", Version: "v1", Kind: "Lantern", Storage: true, Scale: &kube.ScalePaths{}}
}

func (scaledLantern2) Definition() kube.Definition {
	return kube.Definition{Group: "scaled.example.com", Version: "v2", Kind: "Lantern"}
}

// The manifests have a policy for the scale of each version that has one.
func TestPoliciesOfScales(t *testing.T) {
	t.Parallel()
	type (
		status struct {
			Replicas int32 `json:"replicas,omitempty"`
		}
		first  = kube.CustomResource[scaledLantern1, status]
		second = kube.CustomResource[scaledLantern2, status]
	)
	h := handlerOf(t, new(feature.Program),
		lanternConverter(),
		conversion.Between(func(a *first, b *second) { b.Spec.Count = a.Spec.Replicas }, func(b *second, a *first) { a.Spec.Replicas = b.Spec.Count }),
	)
	var names []string
	for _, o := range h.AddTo([]manifests.Object{{"kind": "Deployment"}}, manifests.Installation{Name: "lanterns", Namespace: "shop"}) {
		if metadata, ok := o["metadata"].(manifests.Object); ok && manifests.Kind(o) == "ValidatingAdmissionPolicy" {
			names = append(names, metadata["name"].(string))
		}
	}
	if got := strings.Join(names, " "); got != "lanterns.shop-incomplete lanterns.shop-incomplete-scale.v1.lanterns.scaled.example.com" {
		t.Errorf("the policies are %s", got)
	}
}

// handlerOf returns the handler of the parts of a program, as the feature of package calls makes it.
func handlerOf(t testing.TB, p *feature.Program, parts ...operator.Part) calls.Handler {
	t.Helper()
	for _, each := range parts {
		needs, err := each.Needs()
		if err != nil {
			t.Fatal(err)
		}
		p.Parts = append(p.Parts, each)
		p.Needs.Defines, p.Needs.Reconciles = append(p.Needs.Defines, needs.Defines...), append(p.Needs.Reconciles, needs.Reconciles...)
	}
	h, err := parts[0].(calls.Source).NewHandler(p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newService returns the service of a program without a server, which logs to log.
func newService(log *slog.Logger) *calls.Service {
	client := operator.NoServer().WithFieldManager("lanterns")
	return &calls.Service{
		Program: new(feature.Program), Client: client, Metrics: new(metrics.Registry), Go: func(func(context.Context) error) {},
		Host: &feature.Host{
			Runtime:      &controller.Runtime{Client: client, Cache: cache.New(client), Log: log},
			WithHandlers: func(c *kube.Client) *kube.Client { return c },
		},
	}
}

// incompletePolicies returns the policies of incomplete objects in an installation of parts.
func incompletePolicies(t *testing.T, i manifests.Installation, parts ...operator.Part) []manifests.Object {
	t.Helper()
	all := handlerOf(t, new(feature.Program), parts...).AddTo([]manifests.Object{{"kind": "Deployment"}}, i)
	return all[:len(all)-1]
}

// Regression: the series of a result began with its first value, which the function increase of Prometheus does not see.
func TestCountsOfCallsBeginAtZero(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, part := range []operator.Part{
		webhook.Validate(func(context.Context, *Lantern1, *Lantern1, *kube.Client) error { return nil }), lanternConverter(),
	} {
		s := newService(slog.New(slog.DiscardHandler))
		if err := handlerOf(t, s.Program, part).Prepare(s); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Metrics.WriteTo(&text); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		`yare_webhook_calls_total{webhook="validate.lanterns.lanterns.versions.example.com",operation="UPDATE",result="overload"} 0`,
		`yare_webhook_calls_total{webhook="validate.lanterns.lanterns.versions.example.com",operation="",result="failed"} 0`,
		`yare_conversion_calls_total{definition="lanterns.lanterns.versions.example.com",result="unavailable"} 0`,
		`yare_conversion_objects_total{definition="lanterns.lanterns.versions.example.com",from="v2",to="v1",result="incomplete"} 0`,
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("the metrics lack %s:\n%s", want, &text)
		}
	}
}
