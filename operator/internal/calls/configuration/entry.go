// Package configuration describes the entries of the webhook configurations of a program: what the API server has to
// know to call the webhooks. It sends nothing.
package configuration

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
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
	ObjectSelector          *metav1.LabelSelector `json:"objectSelector,omitempty"`
	SideEffects             string                `json:"sideEffects"`
	TimeoutSeconds          int32                 `json:"timeoutSeconds"`
	AdmissionReviewVersions []string              `json:"admissionReviewVersions"`
	// ReinvocationPolicy is empty in a ValidatingWebhookConfiguration.
	ReinvocationPolicy string           `json:"reinvocationPolicy,omitempty"`
	MatchConditions    []MatchCondition `json:"matchConditions"`
}

// selectorsCondition is the name of the match condition that records the selectors of a program.
const selectorsCondition = "selectors-of-the-program"

// ownSelectors are the selectors of a program, as an entry records them.
type ownSelectors struct {
	Namespaces *metav1.LabelSelector `json:"namespaces,omitempty"`
	Objects    *metav1.LabelSelector `json:"objects,omitempty"`
}

// RecordSelectors adds a condition that is always true, and has the selectors of e as a comment. Others may add
// expressions to the selectors of an entry later. By the record, another release knows which of them the program has
// made.
func (e *Entry) RecordSelectors() error {
	text, err := kube.Marshal(ownSelectors{e.NamespaceSelector, e.ObjectSelector})
	if err == nil {
		e.MatchConditions = append(e.MatchConditions, MatchCondition{selectorsCondition, "true // " + string(text)})
	}
	return err
}

// RecordedSelectors returns the selectors that [Entry.RecordSelectors] has recorded. They are nil without a record.
func (e *Entry) RecordedSelectors() (namespaces, objects *metav1.LabelSelector) {
	var recorded ownSelectors
	for _, c := range e.MatchConditions {
		if _, text, isRecord := strings.Cut(c.Expression, " // "); isRecord && c.Name == selectorsCondition {
			_ = kube.Unmarshal([]byte(text), &recorded) // a text that somebody has changed records nothing
		}
	}
	return recorded.Namespaces, recorded.Objects
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

// ProbePath returns the path of the calls of the probe of a kind of configurations.
func ProbePath(kind string) string { return "/probe/" + kind }

// Probe returns an entry by which the API server calls a Target about each new ConfigMap called name, if it is a dry
// run. kind is that of the configuration of the entry. The path of the calls is that of [ProbePath].
func Probe(t Target, kind, name string) *Entry {
	e := &Entry{
		Name:         "probe." + strings.ToLower(kind) + ".webhooks.yare.dev",
		ClientConfig: ClientConfig{URL: strings.TrimSuffix(t.URL, "/") + ProbePath(kind), CABundle: t.CABundle},
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
