package operator

import (
	"context"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/metrics"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
	"github.com/yare-go/yare/operator/internal/webhook/conversion"
)

// Regression: the series of a result began with its first value, which the function increase of Prometheus does not see.
func TestCountsOfCallsBeginAtZero(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	check := func(context.Context, *Lantern1, *Lantern1, *kube.Client) error { return nil }
	newCallMetrics(&r, []*admission.Webhook{admission.Validator(check, admission.ValidatorOptions{})})
	needs, err := needsOf([]Part{lanternConverter()})
	if err != nil {
		t.Fatal(err)
	}
	step := lanternConverter().(converterPart).step
	kind, err := newConvertedKind(step.First.Resource.GroupKind(), needs.Defines, []*conversion.Step{step})
	if err != nil {
		t.Fatal(err)
	}
	newConversionMetrics(&r, []*conversion.Kind{kind})
	var text strings.Builder
	if _, err := r.WriteTo(&text); err != nil {
		t.Fatal(err)
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

// Regression: the help of a program named each kind as often as parts have its type.
func TestHelpNamesAKindOnce(t *testing.T) {
	t.Parallel()
	kind, err := kube.TypeOf[Lantern1]()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	writeHelp(&text, "lanterns", nil, nil, nil, nil, []kube.Type{kind, kind})
	const want = "lanterns is a Kubernetes operator for Lantern (lanterns.lanterns.versions.example.com, v1).\n"
	if !strings.HasPrefix(text.String(), want) {
		t.Errorf("the help is %s", &text)
	}
}
