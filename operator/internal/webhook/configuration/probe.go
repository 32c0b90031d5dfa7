package configuration

import (
	"strconv"
	"strings"

	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// Probe returns an entry by which the API server calls a Target about SelfSubjectAccessReviews for an object of a name.
// Every user may create such a review, and nothing is stored. With the same entry in a ValidatingWebhookConfiguration and
// a MutatingWebhookConfiguration, the name of the probe shows which of the two was called for.
func Probe(t Target, probe, name string) *Entry {
	return &Entry{
		Name:         "probe." + strings.ToLower(probe) + ".webhooks.yare.dev",
		ClientConfig: ClientConfig{URL: strings.TrimSuffix(t.URL, "/") + admission.ProbePath(probe), CABundle: t.CABundle},
		Rules: []Rule{{
			Operations: []string{"CREATE"}, APIGroups: []string{"authorization.k8s.io"}, APIVersions: []string{"v1"},
			Resources: []string{"selfsubjectaccessreviews"}, Scope: "Cluster",
		}},
		FailurePolicy: "Ignore", MatchPolicy: "Equivalent", SideEffects: "None", TimeoutSeconds: 5,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []MatchCondition{{"probe", "has(object.spec.resourceAttributes) && has(object.spec.resourceAttributes.name) && " +
			"object.spec.resourceAttributes.name == " + strconv.Quote(name)}},
	}
}
