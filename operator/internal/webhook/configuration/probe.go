package configuration

import (
	"strconv"
	"strings"

	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// Probe returns an entry by which the API server calls a Target about each new ConfigMap called name, if it is a dry
// run. kind is that of the configuration of the entry. It is the name of the probe: see [admission.Prober].
func Probe(t Target, kind, name string) *Entry {
	e := &Entry{
		Name:         "probe." + strings.ToLower(kind) + ".webhooks.yare.dev",
		ClientConfig: ClientConfig{URL: strings.TrimSuffix(t.URL, "/") + admission.ProbePath(kind), CABundle: t.CABundle},
		Rules: []Rule{{
			Operations: []string{"CREATE"}, APIGroups: []string{""}, APIVersions: []string{"v1"},
			Resources: []string{"configmaps"}, Scope: "Namespaced",
		}},
		FailurePolicy: "Ignore", MatchPolicy: "Equivalent", SideEffects: "None", TimeoutSeconds: 5,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         []MatchCondition{{"probe", "request.dryRun && request.name == " + strconv.Quote(name)}},
	}
	if kind == "MutatingWebhookConfiguration" {
		e.ReinvocationPolicy = "Never"
	}
	return e
}
