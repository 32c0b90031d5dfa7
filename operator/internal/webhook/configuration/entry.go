// Package configuration makes the entries of the webhook configurations of a program: what the API server has to know
// to call the webhooks. It sends nothing.
package configuration

import (
	"errors"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/webhook/admission"
)

// The types of this file are those of k8s.io/api/admissionregistration/v1, with only the fields that entries have.

// Entry is an element of the webhooks of a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.
type Entry struct {
	// Name names the entry within the configurations of a program.
	Name                    string                `json:"name"`
	ClientConfig            ClientConfig          `json:"clientConfig"`
	Rules                   []Rule                `json:"rules"`
	FailurePolicy           string                `json:"failurePolicy"`
	MatchPolicy             string                `json:"matchPolicy"`
	NamespaceSelector       *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	SideEffects             string                `json:"sideEffects"`
	TimeoutSeconds          int32                 `json:"timeoutSeconds"`
	AdmissionReviewVersions []string              `json:"admissionReviewVersions"`
	// ReinvocationPolicy is empty in a ValidatingWebhookConfiguration.
	ReinvocationPolicy string           `json:"reinvocationPolicy,omitempty"`
	MatchConditions    []MatchCondition `json:"matchConditions"`
}

// ClientConfig is where the API server calls a webhook: a URL or a Service.
type ClientConfig struct {
	URL      string            `json:"url,omitempty"`
	Service  *ServiceReference `json:"service,omitempty"`
	CABundle []byte            `json:"caBundle,omitempty"`
}

// ServiceReference names a path of a port of a Service.
type ServiceReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	Port      int32  `json:"port"`
}

// Rule names the requests that the API server calls about.
type Rule struct {
	Operations  []string `json:"operations"`
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Resources   []string `json:"resources"`
	Scope       string   `json:"scope"`
}

// MatchCondition is an expression in CEL. The API server calls only if all expressions of an entry are true. A request
// for which an expression fails is refused.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Target is where the webhooks of a program are served, and for which namespaces.
type Target struct {
	// URL is the address of the process, such as https://127.0.0.1:9443, or empty for a Service.
	URL string
	// ServiceNamespace, ServiceName and ServicePort name the Service if URL is empty. The default of the port is 443.
	ServiceNamespace, ServiceName string
	ServicePort                   int32
	// CABundle holds certificates in PEM. The API server accepts the program's certificate if one of them signed it.
	// Without them it uses those of its system.
	CABundle []byte
	// Namespaces are the namespaces that the program watches. Default: all namespaces.
	Namespaces []string
	// TimeoutSeconds is how long the API server waits for an answer, from 1 to 30. Default: 10.
	TimeoutSeconds int32
}

// Entries returns the entries of webhooks, in their order: those of a ValidatingWebhookConfiguration, and those of a
// MutatingWebhookConfiguration. A validator of a kind with a scale has a second entry, for the writes to the scale.
// Errors: those of [admission.Check], and a Target without a URL and a Service.
func Entries(webhooks []*admission.Webhook, t Target) (validating, mutating []*Entry, err error) {
	if t.URL == "" && (t.ServiceNamespace == "" || t.ServiceName == "") {
		return nil, nil, errors.New("the webhooks have no address: set the URL, or the namespace and the name of a Service")
	}
	if err := admission.Check(webhooks); err != nil {
		return nil, nil, err
	}
	for _, w := range webhooks {
		e := newEntry(w, t)
		if w.IsDefaulter {
			e.ReinvocationPolicy = "IfNeeded" // another webhook may add an object that lacks defaults
			e.MatchConditions = append(e.MatchConditions, MatchCondition{"not-deleted", notDeleted})
			mutating = append(mutating, e)
			continue
		}
		if w.Options.Deletions {
			e.Rules[0].Operations = append(e.Rules[0].Operations, "DELETE")
		}
		if w.Options.Metadata {
			e.MatchConditions[0].Expression += metadataChanges
		}
		validating = append(validating, e)
		if w.Type.Definition.Scale != nil {
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
func newEntry(w *admission.Webhook, t Target) *Entry {
	r := w.Type.Resource
	e := &Entry{
		Name: w.Name(),
		Rules: []Rule{{
			Operations: []string{"CREATE", "UPDATE"}, APIGroups: []string{r.Group}, APIVersions: []string{r.Version},
			Resources: []string{r.Plural}, Scope: scopeOf(r),
		}},
		FailurePolicy: "Fail", MatchPolicy: "Equivalent", SideEffects: "None", TimeoutSeconds: t.TimeoutSeconds,
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions:         []MatchCondition{{"changed", changed}},
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
		s := &ServiceReference{Namespace: t.ServiceNamespace, Name: t.ServiceName, Path: w.Path(), Port: t.ServicePort}
		if s.Port == 0 {
			s.Port = 443
		}
		e.ClientConfig.Service = s
	}
	if len(t.Namespaces) > 0 && !r.ClusterScoped {
		e.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: t.Namespaces},
		}}
	}
	return e
}

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

// notDeleted is true for an object that is not being deleted.
const notDeleted = `object == null || !has(object.metadata) || !has(object.metadata.deletionTimestamp)`

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
