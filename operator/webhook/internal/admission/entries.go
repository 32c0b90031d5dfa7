package admission

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// Entries returns the entries of webhooks, in their order: those of a ValidatingWebhookConfiguration, and those of a
// MutatingWebhookConfiguration. A validator of a kind with a scale has a second entry, for the writes to the scale.
// Errors: those of [Check], and a configuration.Target without a URL and a Service.
func Entries(webhooks []*Webhook, t configuration.Target) (validating, mutating []*configuration.Entry, err error) {
	if t.URL == "" && (t.ServiceNamespace == "" || t.ServiceName == "") {
		return nil, nil, errors.New("the webhooks have no address: set the URL, or the namespace and the name of a Service")
	}
	if err := Check(webhooks); err != nil {
		return nil, nil, err
	}
	for _, w := range webhooks {
		e := newEntry(w, t)
		if w.foreign != nil {
			if err := w.foreign.addTo(e, w, t); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", w, err)
			}
		}
		if w.IsMutating {
			e.ReinvocationPolicy = "IfNeeded" // another webhook may add an object that lacks defaults
			e.MatchConditions = append(e.MatchConditions, configuration.MatchCondition{Name: "not-deleted", Expression: notDeleted})
			mutating = append(mutating, e)
			continue
		}
		if w.Options.Metadata {
			e.MatchConditions[0].Expression += metadataChanges
		}
		validating = append(validating, e)
		if w.foreign == nil && w.Type.Definition.Scale != nil {
			e = newEntry(w, t)
			e.Name = "scale." + e.Name
			e.Rules[0].Operations = []string{"UPDATE"}
			e.Rules[0].Resources[0] += "/scale"
			validating = append(validating, e)
		}
	}
	return validating, mutating, nil
}

// newEntry returns the entry of w for the creations and changes of objects.
func newEntry(w *Webhook, t configuration.Target) *configuration.Entry {
	r := w.Type.Resource
	e := &configuration.Entry{
		Name: w.Name(),
		Rules: []configuration.Rule{{
			Operations: w.Operations(), APIGroups: []string{r.Group}, APIVersions: []string{r.Version},
			Resources: []string{r.Plural}, Scope: scopeOf(r),
		}},
		FailurePolicy: "Fail", MatchPolicy: "Equivalent", SideEffects: "None", TimeoutSeconds: t.TimeoutSeconds,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         []configuration.MatchCondition{{Name: "changed", Expression: changed}},
	}
	if w.Options.Ignore {
		e.FailurePolicy = "Ignore"
	}
	if e.TimeoutSeconds == 0 {
		e.TimeoutSeconds = 10
	}
	e.ClientConfig.CABundle = t.CABundle
	if t.URL != "" {
		e.ClientConfig.URL = strings.TrimSuffix(t.URL, "/") + w.Path()
	} else {
		s := &configuration.ServiceReference{
			Namespace: t.ServiceNamespace, Name: t.ServiceName, Path: w.Path(), Port: t.ServicePort,
		}
		if s.Port == 0 {
			s.Port = 443
		}
		e.ClientConfig.Service = s
	}
	if len(t.Namespaces) > 0 && !r.ClusterScoped {
		e.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: labelNamespaceName, Operator: metav1.LabelSelectorOpIn, Values: t.Namespaces},
		}}
	}
	return e
}

// labelNamespaceName is the label that API servers give each Namespace, with its name.
const labelNamespaceName = "kubernetes.io/metadata.name"

func scopeOf(r wire.Resource) string {
	if r.ClusterScoped {
		return "Cluster"
	}
	return "Namespaced"
}

// The expressions below must never fail, because the API server then refuses the request. So they look at no field that
// may be absent: object is null in a deletion, oldObject is null in a creation, and the objects of some subresources
// have no metadata. They compare the members of objects one by one, because status and metadata are left out.

// changed is true unless an update changes nothing outside of metadata and status. Example:
// {"spec":{"a":1},"status":{}} has not changed from {"spec":{"a":1}}, and {"spec":{"a":1},"data":{}} has, because of
// data.
const changed = `object == null || oldObject == null || ` +
	`object.exists(k, k != "metadata" && k != "status" && (!(k in oldObject) || object[k] != oldObject[k])) || ` +
	`oldObject.exists(k, k != "metadata" && k != "status" && !(k in object))`

// metadataChanges is true if labels or annotations have changed. It follows [changed], and so both objects are there.
const metadataChanges = ` || ["labels", "annotations"].exists(k, ` +
	`(has(object.metadata) && k in object.metadata ? object.metadata[k] : {}) != ` +
	`(has(oldObject.metadata) && k in oldObject.metadata ? oldObject.metadata[k] : {}))`

// ofStatus is true for a write of the status of a kind of others, which changes nothing outside of the status.
const ofStatus = ` || has(request.subResource) && request.subResource == "status"`

// notDeleted is true for an object that is not being deleted.
const notDeleted = `object == null || !has(object.metadata) || !has(object.metadata.deletionTimestamp)`
