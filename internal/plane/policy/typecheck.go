package policy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
)

const (
	// maxCheckTime is how long a cluster may take to check the types of a policy.
	maxCheckTime = 90 * time.Second
	// confirmationTime is how long a result must stay the same. OpenAPI documents follow the definitions within a second.
	confirmationTime = time.Second
	// maxCheckedKinds is how many kinds of a policy a cluster checks (k8s.io/apiserver, maxTypesToCheck).
	maxCheckedKinds = 10
	pollPeriod      = 50 * time.Millisecond
)

// typeCheck checks the types of one policy.
type typeCheck struct {
	client *kube.Client
	policy *unstructured.Unstructured
	// copyAPI is the API of the copy, and copyName its name. attempts is the number of the copy's generations so far.
	copyAPI  kube.API[unstructured.Unstructured]
	copyName string
	attempts int
}

// policySpec is what the check has to know of the spec of a policy.
type policySpec struct {
	MatchConstraints struct {
		ResourceRules []struct {
			APIGroups   []string `json:"apiGroups"`
			APIVersions []string `json:"apiVersions"`
			Resources   []string `json:"resources"`
		} `json:"resourceRules"`
	} `json:"matchConstraints"`
	Validations []validation `json:"validations"`
}

// namedResources returns the resources that the rules of the policy name, in a version that may be "*". It leaves out
// resources of the core group, subresources, and rules with another wildcard.
func (s policySpec) namedResources() (named []schema.GroupVersionResource) {
	for _, rule := range s.MatchConstraints.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, version := range rule.APIVersions {
				for _, plural := range rule.Resources {
					if group != "" && !strings.Contains(group+plural, "*") && !strings.Contains(plural, "/") {
						named = append(named, schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
					}
				}
			}
		}
	}
	return named
}

// validation is a rule of a policy.
type validation struct {
	Expression        string `json:"expression"`
	MessageExpression string `json:"messageExpression"`
}

// warning is what the type check reports about a field.
type warning struct {
	FieldRef string `json:"fieldRef"`
	Warning  string `json:"warning"`
}

// run returns the mistakes in the policy as an error.
func (c *typeCheck) run(ctx context.Context) error {
	ctx, cancel := withLimit(ctx, maxCheckTime,
		fmt.Sprintf("the cluster has not checked the types of the %s within", describe(c.policy)))
	defer cancel()
	c.copyAPI = apiOf(c.client, c.policy)
	c.copyName = "yare-type-check-" + strings.ToLower(rand.Text())
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = c.copyAPI.Delete(ctx, c.copyName) // without a binding it does nothing
	}()
	err := c.check(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// check has the copy checked until a result is confirmed, and returns the mistakes as an error. Package policy has an
// example.
func (c *typeCheck) check(ctx context.Context) error {
	spec, err := specOf(c.policy)
	if err != nil {
		return fmt.Errorf("read the %s: %w", describe(c.policy), err)
	}
	kinds, err := c.kinds(ctx, spec)
	if err != nil || len(kinds) == 0 {
		if err == nil {
			_, err = apiOf(c.client, c.policy).Apply(ctx, c.policy.DeepCopy(), kube.DryRun(), kube.Strict())
		}
		return c.describeRefusal(err)
	}
	var lastWarnings []warning
	var sameSince time.Time // the time of the first of the equal results, or zero without a result
	for {
		all, err := c.checkOnce(ctx, len(spec.Validations))
		if err != nil {
			return err
		}
		control := fmt.Sprintf("spec.validations[%d].expression", len(spec.Validations))
		isControl := func(w warning) bool { return w.FieldRef == control }
		// A result counts only if the warning about the control names each of the kinds.
		isComplete := slices.ContainsFunc(all, func(w warning) bool {
			return isControl(w) &&
				!slices.ContainsFunc(kinds, func(kind string) bool { return !strings.Contains(w.Warning, kind+": ") })
		})
		all = slices.DeleteFunc(all, isControl)
		switch {
		case !isComplete:
			sameSince = time.Time{}
		case sameSince.IsZero() || !slices.Equal(all, lastWarnings):
			sameSince = time.Now()
		case time.Since(sameSince) >= confirmationTime:
			return c.errorOf(spec, all)
		}
		lastWarnings = all
		wait := pollPeriod
		if !sameSince.IsZero() {
			wait = confirmationTime
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// specOf returns the spec of a policy.
func specOf(policy *unstructured.Unstructured) (spec policySpec, err error) {
	content, _, err := unstructured.NestedMap(policy.Object, "spec")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec)
	}
	return spec, err
}

// kinds returns the kinds that the rules of the policy name and that are custom resources. The cluster checks no rule
// with a wildcard, and no subresource. The kinds of Kubernetes are always known.
func (c *typeCheck) kinds(ctx context.Context, spec policySpec) (kinds []string, err error) {
	named := slices.DeleteFunc(spec.namedResources(), func(r schema.GroupVersionResource) bool { return r.Version == "*" })
	resources, err := customResources(ctx, c.client, named)
	for _, r := range resources[:min(len(resources), maxCheckedKinds)] {
		kinds = append(kinds, r.GroupVersionKind.String())
	}
	return kinds, err
}

// checkOnce applies a copy of the policy with another control, and returns the warnings about this generation.
func (c *typeCheck) checkOnce(ctx context.Context, validationCount int) ([]warning, error) {
	c.attempts++
	spec, _, err := unstructured.NestedMap(c.policy.Object, "spec")
	if err != nil {
		return nil, err
	}
	validations, _, err := unstructured.NestedSlice(spec, "validations")
	if err != nil || len(validations) != validationCount {
		return nil, fmt.Errorf("spec.validations of the %s is no list of objects", describe(c.policy))
	}
	spec["validations"] = append(validations,
		map[string]any{"expression": fmt.Sprintf("object.metadata.name == %d", c.attempts)})
	policyCopy := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	policyCopy.SetGroupVersionKind(c.policy.GroupVersionKind())
	policyCopy.SetName(c.copyName)
	live, err := c.copyAPI.Apply(ctx, policyCopy, kube.Strict())
	if err != nil {
		return nil, c.describeRefusal(err)
	}
	generation := live.GetGeneration()
	for {
		var status struct {
			ObservedGeneration int64 `json:"observedGeneration"`
			TypeChecking       struct {
				ExpressionWarnings []warning `json:"expressionWarnings"`
			} `json:"typeChecking"`
		}
		content, _, _ := unstructured.NestedMap(live.Object, "status")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
			return nil, fmt.Errorf("read the status of the type check: %w", err)
		}
		if status.ObservedGeneration >= generation {
			return status.TypeChecking.ExpressionWarnings, nil
		}
		if err := sleep(ctx, pollPeriod); err != nil {
			return nil, err
		}
		if live, err = c.copyAPI.Get(ctx, c.copyName); err != nil {
			return nil, err
		}
	}
}

// describeRefusal returns the error of an apply of the copy as an error about the policy. It returns nil for nil.
func (c *typeCheck) describeRefusal(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the server refuses the %s: %s",
		describe(c.policy), strings.ReplaceAll(err.Error(), c.copyName, c.policy.GetName()))
}

// errorOf returns warnings as an error, or nil if there are none.
func (c *typeCheck) errorOf(spec policySpec, all []warning) error {
	var errs []error
	for _, w := range all {
		errs = append(errs, fmt.Errorf("the %s has a mistake in %s, %q: %s",
			describe(c.policy), w.FieldRef, expressionAt(spec, w.FieldRef), plainText(w.Warning)))
	}
	return errors.Join(errs...)
}

// expressionAt returns the expression that a field reference such as spec.validations[0].expression names.
func expressionAt(spec policySpec, ref string) string {
	for i, v := range spec.Validations {
		switch ref {
		case fmt.Sprintf("spec.validations[%d].expression", i):
			return v.Expression
		case fmt.Sprintf("spec.validations[%d].messageExpression", i):
			return v.MessageExpression
		}
	}
	return ""
}

// plainText returns a warning in one line. The lines that repeat the expression with a pointer are left out. For
// example,
//
//	example.com/v1, Kind=Gizmo: ERROR: <input>:1:12: undefined field 'siz'
//	 | object.spec.siz > 1
//	 | ...........^
//
// becomes "example.com/v1, Kind=Gizmo: 1:12: undefined field 'siz'".
func plainText(warning string) string {
	var lines []string
	for line := range strings.SplitSeq(warning, "\n") {
		if line = strings.TrimRight(line, " "); line != "" && !strings.HasPrefix(line, " | ") {
			lines = append(lines, strings.ReplaceAll(line, "ERROR: <input>:", ""))
		}
	}
	return strings.Join(lines, "; ")
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
