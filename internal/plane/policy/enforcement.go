package policy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// maxEnforcementTime is how long an API server may take to observe policies.
const maxEnforcementTime = time.Minute

// waitUntilEnforced returns when the API server enforces policies that were applied. An API server observes the
// policies of a kind, and their bindings, in the order of their writes. So waitUntilEnforced writes one more policy of
// each kind, the last policy, and waits until a dry run shows the effect of the last policy.
//
// An API server answers the mutation of a custom resource with 503 until it has read the OpenAPI document of the kind,
// which it looks for every five seconds (k8s.io/apiserver, typeConverterManager). So the last mutating policy concerns
// the custom resources that the policies name, too.
func waitUntilEnforced(ctx context.Context, client *kube.Client, policies []unstructured.Unstructured) error {
	ctx, cancel := withLimit(ctx, maxEnforcementTime, "the API server does not enforce the policies after")
	defer cancel()
	for _, kind := range []string{validatingKind, mutatingKind} {
		ofKind := slices.DeleteFunc(slices.Clone(policies),
			func(p unstructured.Unstructured) bool { return p.GetKind() != kind })
		if len(ofKind) == 0 {
			continue
		}
		if err := tryLastPolicy(ctx, client, kind, ofKind); err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
				return fmt.Errorf("%w: %w", cause, err)
			}
			return fmt.Errorf("wait until the API server enforces policies: %w", err)
		}
	}
	return nil
}

// tryLastPolicy makes the last policy of a kind after the policies of that kind, waits for its effect, and removes it.
func tryLastPolicy(ctx context.Context, client *kube.Client, kind string, policies []unstructured.Unstructured) error {
	tried := []wire.Resource{{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps",
	}}
	for _, p := range policies {
		if kind != mutatingKind {
			break
		}
		spec, err := specOf(&p)
		if err != nil {
			return err
		}
		custom, err := customResources(ctx, client, spec.namedResources())
		if err != nil {
			return err
		}
		tried = append(tried, custom...)
	}
	id := strings.ToLower(rand.Text())
	name, object := "yare-last-"+id, "yare-tried-"+id
	last := lastPolicy(kind, policies[0].GetAPIVersion(), name, object, tried)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = Remove(ctx, client, last) // what is left concerns no object
	}()
	for _, each := range last {
		if _, err := apiOf(client, &each).Apply(ctx, &each); err != nil {
			return err
		}
	}
	for _, r := range tried {
		if err := awaitEffect(ctx, client, r, kind, name, object); err != nil {
			return err
		}
	}
	return nil
}

// awaitEffect waits until a dry run of the creation of an object shows the effect of the last policy, whose name is
// policy. Any other refusal of a custom resource, such as that of its schema, comes after the mutation.
func awaitEffect(ctx context.Context, client *kube.Client, r wire.Resource, kind, policy, name string) error {
	api := kube.Dynamic(client, r, metav1.NamespaceDefault)
	if r.ClusterScoped {
		api = kube.Dynamic(client, r, "")
	}
	for {
		object := new(unstructured.Unstructured)
		object.SetGroupVersionKind(r.GroupVersionKind)
		object.SetName(name)
		answer, err := api.Create(ctx, object, kube.DryRun())
		isByPolicy := err != nil && strings.Contains(err.Error(), policy)
		switch {
		case err == nil && answer.GetLabels()[policy] != "", isByPolicy && kind == validatingKind:
			return nil
		case err == nil, isByPolicy, kube.HasReason(err, metav1.StatusReasonServiceUnavailable):
		case r.Group != "" && ctx.Err() == nil:
			return nil
		default:
			return err
		}
		if sleep(ctx, pollPeriod) != nil {
			return cmp.Or(err, context.Cause(ctx))
		}
	}
}

// lastPolicy returns a policy of a name and its binding, which concern the creation of the object of each resource. A
// validating policy refuses the object. A mutating policy adds a label.
func lastPolicy(kind, version, name, tried string, resources []wire.Resource) []unstructured.Unstructured {
	type object = map[string]any
	var rules []any
	for _, r := range resources {
		rules = append(rules, object{
			"apiGroups": []any{r.Group}, "apiVersions": []any{r.Version}, "resources": []any{r.Plural},
			"resourceNames": []any{tried}, "operations": []any{"CREATE"},
		})
	}
	spec := object{"matchConstraints": object{"resourceRules": rules}}
	binding := object{"policyName": name}
	if kind == validatingKind {
		spec["validations"] = []any{object{"expression": "false", "message": "the policies are enforced"}}
		binding["validationActions"] = []any{"Deny"}
	} else {
		spec["reinvocationPolicy"] = "Never"
		spec["mutations"] = []any{object{"patchType": "ApplyConfiguration", "applyConfiguration": object{
			"expression": fmt.Sprintf(`Object{metadata: Object.metadata{labels: {%q: "enforced"}}}`, name),
		}}}
	}
	return []unstructured.Unstructured{
		{Object: object{"apiVersion": version, "kind": kind, "metadata": object{"name": name}, "spec": spec}},
		{Object: object{"apiVersion": version, "kind": kind + "Binding", "metadata": object{"name": name}, "spec": binding}},
	}
}

// withLimit returns a context that ends after d, with an error that begins with text. A ctx that has a deadline keeps
// that deadline.
func withLimit(ctx context.Context, d time.Duration, text string) (context.Context, context.CancelFunc) {
	if _, hasDeadline := ctx.Deadline(); hasDeadline {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%s %s", text, d))
}
