package policy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
)

// maxEnforcementTime is how long an API server may take to observe policies.
const maxEnforcementTime = time.Minute

// waitUntilEnforced returns when the API server enforces policies that were applied. An API server observes the
// policies of a kind, and their bindings, in the order of their writes. So waitUntilEnforced writes one more policy of
// each kind, the last policy, and waits until a dry run shows the effect of the last policy.
func waitUntilEnforced(ctx context.Context, client *kube.Client, policies []unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxEnforcementTime,
		fmt.Errorf("the API server does not enforce the policies after %s", maxEnforcementTime))
	defer cancel()
	for _, kind := range []string{validatingKind, mutatingKind} {
		i := slices.IndexFunc(policies, func(p unstructured.Unstructured) bool { return p.GetKind() == kind })
		if i < 0 {
			continue
		}
		if err := tryLastPolicy(ctx, client, kind, policies[i].GetAPIVersion()); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("wait until the API server enforces policies: %w", err)
		}
	}
	return nil
}

// tryLastPolicy makes the last policy of a kind, waits for its effect, and removes it.
func tryLastPolicy(ctx context.Context, client *kube.Client, kind, version string) error {
	name := "yare-last-" + strings.ToLower(rand.Text())
	last := lastPolicy(kind, version, name)
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
	maps := kube.Namespaced[corev1.ConfigMap](client, metav1.NamespaceDefault)
	for {
		answer, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, kube.DryRun())
		switch {
		case err != nil && !strings.Contains(err.Error(), name):
			return err
		case err != nil: // the refusal names the policy
			if kind == validatingKind {
				return nil
			}
			return errors.Join(errors.New("a mutation fails"), err)
		case answer.Labels[name] != "":
			return nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return err
		}
	}
}

// lastPolicy returns a policy and its binding, which concern the creation of one ConfigMap. A validating policy refuses
// the ConfigMap. A mutating one adds a label.
func lastPolicy(kind, version, name string) []unstructured.Unstructured {
	type object = map[string]any
	spec := object{"matchConstraints": object{"resourceRules": []any{object{
		"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "resourceNames": []any{name},
		"operations": []any{"CREATE"},
	}}}}
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
