package admission_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
)

type (
	boxSpec  struct{}
	box      = kube.CustomResource[boxSpec, kube.None]
	siteSpec struct{}
	site     = kube.CustomResource[siteSpec, kube.None]
)

func (boxSpec) Definition() kube.Definition {
	return kube.Definition{Group: "condition.example.com", Version: "v2", Kind: "Box"}
}

func (siteSpec) Definition() kube.Definition {
	return kube.Definition{Group: "condition.example.com", Version: "v1", Kind: "Site", ClusterScoped: true}
}

func validatorOf[T any, P kube.DefinedObjectOf[T]](options admission.ValidatorOptions) *admission.Webhook {
	return admission.Validator[T, P](func(context.Context, *T, *T, *kube.Client) error { return nil }, options)
}

// encoded returns entries as the types of Kubernetes have them. Entries have no other fields.
func encoded[T any](t *testing.T, entries []*configuration.Entry) (all []T) {
	t.Helper()
	text, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEntries(t *testing.T) {
	t.Parallel()
	webhooks := []*admission.Webhook{
		validatorOf[crate](admission.ValidatorOptions{Deletions: true, Ignore: true}), validatorOf[box](admission.ValidatorOptions{Metadata: true}),
		validatorOf[site](admission.ValidatorOptions{}), admission.Defaulter(func(context.Context, *box) {}),
	}
	validating, mutating, err := admission.Entries(webhooks, configuration.Target{
		ServiceNamespace: "boxes-system", ServiceName: "boxes", CABundle: []byte("x"), Namespaces: []string{"shop", "store"}, TimeoutSeconds: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range encoded[admissionv1.ValidatingWebhook](t, validating) {
		r, operations := e.Rules[0], []string{}
		for _, each := range r.Operations {
			operations = append(operations, string(each))
		}
		selector := ""
		if e.NamespaceSelector != nil {
			selector = e.NamespaceSelector.MatchExpressions[0].Key + " " + strings.Join(e.NamespaceSelector.MatchExpressions[0].Values, ",")
		}
		got = append(got, strings.Join([]string{e.Name, *e.ClientConfig.Service.Path, strings.Join(operations, ","), r.Resources[0], r.APIVersions[0],
			string(*r.Scope), string(*e.FailurePolicy), selector}, " "))
		if s := e.ClientConfig.Service; *s.Port != 443 || s.Namespace != "boxes-system" || s.Name != "boxes" || string(e.ClientConfig.CABundle) != "x" ||
			*e.SideEffects != admissionv1.SideEffectClassNone || *e.MatchPolicy != admissionv1.Equivalent || *e.TimeoutSeconds != 5 {
			t.Errorf("%s: %+v", e.Name, e)
		}
		if hasLabels := strings.Contains(e.MatchConditions[0].Expression, "labels"); hasLabels != (e.Name == "validate.boxes.condition.example.com") {
			t.Errorf("%s: %s", e.Name, e.MatchConditions[0].Expression)
		}
	}
	const selector = " kubernetes.io/metadata.name shop,store"
	want := []string{
		"validate.crates.condition.example.com /validate.crates.condition.example.com/v1 CREATE,UPDATE,DELETE crates v1 Namespaced Ignore" + selector,
		"scale.validate.crates.condition.example.com /validate.crates.condition.example.com/v1 UPDATE crates/scale v1 Namespaced Ignore" + selector,
		"validate.boxes.condition.example.com /validate.boxes.condition.example.com/v2 CREATE,UPDATE boxes v2 Namespaced Fail" + selector,
		"validate.sites.condition.example.com /validate.sites.condition.example.com/v1 CREATE,UPDATE sites v1 Cluster Fail ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the entries are\n%s", strings.Join(got, "\n"))
	}
	defaults := encoded[admissionv1.MutatingWebhook](t, mutating)
	if len(defaults) != 1 || defaults[0].Name != "default.boxes.condition.example.com" || *defaults[0].ReinvocationPolicy != admissionv1.IfNeededReinvocationPolicy ||
		len(defaults[0].MatchConditions) != 2 {
		t.Errorf("the defaulter's entries are %+v", defaults)
	}
}

func TestTargetsThatAreWrong(t *testing.T) {
	t.Parallel()
	good := []*admission.Webhook{validatorOf[box](admission.ValidatorOptions{})}
	for name, target := range map[string]configuration.Target{"nothing": {}, "no name": {ServiceNamespace: "x"}, "no namespace": {ServiceName: "x"}} {
		if _, _, err := admission.Entries(good, target); err == nil || !strings.Contains(err.Error(), "set the URL, or the namespace and the name of a Service") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := admission.Entries([]*admission.Webhook{good[0], good[0]}, configuration.Target{URL: "https://127.0.0.1:9443"}); err == nil {
		t.Error("two validators of a kind: there is no error")
	}
}
