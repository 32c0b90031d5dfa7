package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
)

// ForeignOptions are those of package operator/webhook.
type ForeignOptions struct {
	Name                         string
	Objects, Namespaces          string
	OnCreate, OnUpdate, OnDelete bool
	Subresources                 []string
	FailBecause                  string
	Timeout                      time.Duration
}

// foreign says which requests about a kind of others a webhook is called about, and what they wait for.
type foreign struct {
	// objects and namespaces are the selectors of the author. They are nil if there is none.
	objects, namespaces *metav1.LabelSelector
	operations          []string
	subresources        []string
	failurePolicy       string
	timeoutSeconds      int32
}

// defaultForeignTimeout and maxForeignTimeout bound how long a request waits for a webhook of a kind of others.
const (
	defaultForeignTimeout = 3 * time.Second
	maxForeignTimeout     = 10 * time.Second
)

const (
	subresourceScale    = "scale"
	subresourceEviction = "eviction"
)

// subresource is what webhooks can do at a subresource.
type subresource struct {
	operation string
	// body is the kind of the body, unless the body is the object.
	body string
	// isOfPods is true if only Pods have the subresource.
	isOfPods bool
}

// subresourceOf returns the subresource with a name. It reports whether webhooks can be called about the subresource.
func subresourceOf(name string) (s subresource, ok bool) {
	switch name {
	case "status":
		return subresource{operation: "UPDATE"}, true
	case "ephemeralcontainers", "resize":
		return subresource{operation: "UPDATE", isOfPods: true}, true
	case subresourceScale:
		return subresource{operation: "UPDATE", body: "Scale"}, true
	case subresourceEviction:
		return subresource{operation: "CREATE", body: "Eviction", isOfPods: true}, true
	}
	return s, false
}

// controlPlaneNamespaces returns the namespaces that no webhook of a kind of others is called about.
func controlPlaneNamespaces() []string {
	return []string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"}
}

// ForeignValidator returns a webhook that refuses objects of a kind of others, as a [Validator] does. Nobody
// knows the schema of such a kind. So ratcheting finds the elements of lists by their values, and all field paths are
// accepted. If the webhook fails, and the options have no FailBecause, the request passes.
func ForeignValidator[T any, P kube.ObjectOf[T]](
	o ForeignOptions, check func(ctx context.Context, before, after *T, c *kube.Client) error,
) *Webhook {
	w := newWebhook[T, P]()
	w.answerRequest = validate
	w.initForeign("validate", check == nil, o)
	setCheck(w, check)
	return w
}

// ForeignMutator returns a webhook that changes objects of a kind of others before they are stored. mutate changes the
// object in place. It must change nothing when it is called for its own result, which is an error in strict mode. An
// error refuses the request, as that of a [Validator]. The function is never called for an object that is being deleted.
func ForeignMutator[T any, P kube.ObjectOf[T]](
	o ForeignOptions, mutateObject func(ctx context.Context, object *T, c *kube.Client) error,
) *Webhook {
	w := newWebhook[T, P]()
	w.IsMutating, w.answerRequest = true, mutate
	w.initForeign("mutate", mutateObject == nil, o)
	w.mutate = func(ctx context.Context, object any, c *kube.Client) error { return mutateObject(ctx, object.(*T), c) }
	return w
}

// parseSelectors sets the selectors, or returns what is wrong with them.
func (f *foreign) parseSelectors(r wire.Resource, o ForeignOptions) error {
	for _, each := range []struct {
		name, text string
		selector   **metav1.LabelSelector
	}{{"Objects", o.Objects, &f.objects}, {"Namespaces", o.Namespaces, &f.namespaces}} {
		var err error
		if *each.selector, err = parseSelector(each.text); err != nil {
			return fmt.Errorf("the selector of %s %q is not valid: write it as kubectl get -l has it: %w", each.name, each.text, err)
		}
	}
	switch {
	case f.namespaces != nil && !isSelectedByNamespace(r):
		return fmt.Errorf("the selector of Namespaces %q cannot select, because the kind %s is outside of namespaces: select by Objects",
			o.Namespaces, r.Kind)
	case f.objects == nil && f.namespaces == nil:
		return fmt.Errorf("it has no selector, so API servers would call it about each object of the kind %s in the cluster: set Objects or Namespaces of the ForeignOptions", r.Kind)
	case f.namespaces != nil && hasOnlyNames(f.namespaces, controlPlaneNamespaces()):
		return fmt.Errorf("the selector of Namespaces %q cannot select: no webhook of a kind of others is called about %s",
			o.Namespaces, strings.Join(controlPlaneNamespaces(), ", "))
	}
	return nil
}

// parseSelector returns the selector of a text without matchLabels, or nil for a text without requirements.
func parseSelector(text string) (*metav1.LabelSelector, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	requirements, _ := parsed.Requirements()
	var s *metav1.LabelSelector
	for _, r := range requirements {
		e := metav1.LabelSelectorRequirement{Key: r.Key(), Values: slices.Sorted(slices.Values(r.ValuesUnsorted()))}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			e.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			e.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			e.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			e.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			return nil, fmt.Errorf("webhooks have no operator %s", r.Operator())
		}
		if s == nil {
			s = &metav1.LabelSelector{}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s, nil
}

// isSelectedByNamespace reports whether a namespace selector concerns the objects of r. The labels of a Namespace are
// those of the object itself.
func isSelectedByNamespace(r wire.Resource) bool {
	return !r.ClusterScoped || r.Group == "" && r.Plural == "namespaces"
}

// hasOnlyNames reports whether a selector of namespaces selects by name, and only names among excluded.
func hasOnlyNames(s *metav1.LabelSelector, excluded []string) bool {
	isExcluded := func(name string) bool { return slices.Contains(excluded, name) }
	return slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key == labelNamespaceName && e.Operator == metav1.LabelSelectorOpIn &&
			!slices.ContainsFunc(e.Values, func(name string) bool { return !isExcluded(name) })
	})
}

// allOperations returns the operations on the objects and their subresources.
func (f *foreign) allOperations() []string {
	all := slices.Clone(f.operations)
	for _, name := range f.subresources {
		if s, _ := subresourceOf(name); !slices.Contains(all, s.operation) {
			all = append(all, s.operation)
		}
	}
	return all
}

// readsObjects reports whether the body of a request is of another kind than the object, so that the object is read.
func (f *foreign) readsObjects() bool {
	return slices.ContainsFunc(f.subresources, func(name string) bool {
		s, _ := subresourceOf(name)
		return s.body != ""
	})
}

// addTo makes e, an entry of w for a target, that of a kind of others.
func (f *foreign) addTo(e *configuration.Entry, w *Webhook, t configuration.Target) error {
	r, rule := w.Type.Resource, e.Rules[0]
	e.Rules = nil
	if rule.Operations = f.operations; len(f.operations) > 0 {
		e.Rules = append(e.Rules, rule)
	}
	for _, name := range f.subresources {
		s, _ := subresourceOf(name)
		rule.Operations, rule.Resources = []string{s.operation}, []string{r.Plural + "/" + name}
		e.Rules = append(e.Rules, rule)
	}
	e.FailurePolicy, e.TimeoutSeconds, e.ObjectSelector = f.failurePolicy, f.timeoutSeconds, f.objects
	e.MatchConditions[0].Expression += metadataChanges
	if slices.Contains(f.subresources, "status") {
		e.MatchConditions[0].Expression += ofStatus
	}
	if isSelectedByNamespace(r) {
		excluded := controlPlaneNamespaces()
		if t.URL == "" && !slices.Contains(excluded, t.ServiceNamespace) {
			excluded = append(excluded, t.ServiceNamespace)
		}
		s := &metav1.LabelSelector{}
		if e.NamespaceSelector != nil { // the namespaces that the program watches
			s = e.NamespaceSelector
			if hasOnlyNames(s, excluded) {
				return fmt.Errorf("it would never be called: the program watches only the namespaces %s, and those of the control plane and of the program are excluded from webhooks of kinds of others: add a --watch-namespace",
					strings.Join(t.Namespaces, ", "))
			}
		}
		if f.namespaces != nil {
			s.MatchExpressions = append(s.MatchExpressions, f.namespaces.MatchExpressions...)
		}
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: labelNamespaceName, Operator: metav1.LabelSelectorOpNotIn, Values: excluded,
		})
		e.NamespaceSelector = s
	}
	return e.RecordSelectors()
}
