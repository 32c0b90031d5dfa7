package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/schemachange"
	"github.com/yare-go/yare/kube"
)

// crds are the CustomResourceDefinitions that an operator prints.
type crds struct {
	text  string
	items []unstructured.Unstructured
}

// askCRDs runs `OPERATOR crd`, and returns the CustomResourceDefinitions that the operator prints.
func askCRDs(ctx context.Context, binary, shown string) (crds, error) {
	out, problems, err := runSubcommand(ctx, binary, "crd")
	const advice = "an operator's subcommand crd prints its CustomResourceDefinitions as YAML; operator.Main brings it"
	switch {
	case context.Cause(ctx) != nil:
		return crds{}, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return crds{}, fmt.Errorf("%s is no operator: `crd` did not end within %s: %s", shown, printLimit, advice)
	case err != nil:
		if refused, ok := errors.AsType[*operatorError](err); ok {
			return crds{}, refused
		}
		if trace := panicTrace(problems); trace != "" {
			return crds{}, fmt.Errorf("%s panics before it prints its CustomResourceDefinitions (`crd` failed with %w): its trace begins with the place to correct%s", shown, err, indented(trace))
		}
		return crds{}, fmt.Errorf("%s is no operator: `crd` failed (%w): %s%s", shown, err, advice, indented(problems))
	}
	items, err := manifest.Parse(out)
	if err == nil && len(out) == 0 {
		err = errors.New("it prints no object")
	}
	if err == nil {
		err = onlyCRDs(items)
	}
	if err != nil {
		return crds{}, fmt.Errorf("%s is no operator: what `crd` prints is no CustomResourceDefinition: %w: %s",
			shown, err, advice)
	}
	return crds{text: string(out), items: items}, nil
}

func onlyCRDs(items []unstructured.Unstructured) error {
	for _, item := range items {
		if item.GetKind() != "CustomResourceDefinition" {
			return fmt.Errorf("it prints an object of kind %q", item.GetKind())
		}
	}
	return nil
}

// panicTrace returns the begin of what a program prints when it panics, or "" if the output has no panic. The first
// goroutine is the one that panics, and its first lines are the place.
func panicTrace(output string) string {
	_, trace, found := strings.Cut("\n"+output, "\npanic: ")
	if !found {
		return ""
	}
	lines := strings.Split(strings.TrimSpace("panic: "+trace), "\n")
	return strings.Join(lines[:min(len(lines), 12)], "\n")
}

// indented returns the last lines of a text, indented below an error.
func indented(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] == "" {
		return ""
	}
	if len(lines) > 15 {
		lines = lines[len(lines)-15:]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

// apply applies the CRDs and waits until the API server serves them. If others of these names may have been applied
// before, it also waits until the server uses the new schemas. It calls report if it cannot see that the server does so
// in time.
func (c crds) apply(ctx context.Context, k kubectl, isFirst bool, report func(string)) error {
	var before *schemachange.Snapshot
	if !isFirst {
		var err error
		if before, err = c.takeSnapshot(ctx, k); err != nil {
			report(fmt.Sprintf("read the CustomResourceDefinitions, to see when the server uses the new ones: %v", err))
		}
	}
	_, err := k.run(ctx, c.text, "apply", "--server-side", "--force-conflicts", "--field-manager=yare-dev", "-f", "-")
	if err != nil {
		return fmt.Errorf("the API server refuses a CustomResourceDefinition: correct the tag crd or the method Rules of the Go type at the path that the answer names: %s", withoutRuleFields(err.Error()))
	}
	if err := c.waitUntilServed(ctx, k); err != nil {
		return fmt.Errorf("wait for the CustomResourceDefinitions to be served: %w", err)
	}
	if before != nil {
		if err := before.Wait(ctx); err != nil {
			report(err.Error())
		}
	}
	return context.Cause(ctx)
}

// takeSnapshot returns the state of the CRDs in the cluster.
func (c crds) takeSnapshot(ctx context.Context, k kubectl) (*schemachange.Snapshot, error) {
	config, _, err := kube.ConfigSource{Kubeconfig: k.kubeconfig}.Load()
	if err != nil {
		return nil, err
	}
	return schemachange.Take(ctx, config, c.names())
}

// withoutRuleFields returns the answer of an API server about a rule in CEL with the rule in place of all its fields.
// Example: `Invalid value: {"Rule":"self.a > 1","Message":"","Reason":null}: compilation failed` becomes
// `Invalid value: "self.a > 1": compilation failed`.
func withoutRuleFields(answer string) string {
	rule := regexp.MustCompile(`Invalid value: (\{"Rule":.*?\}): `)
	return rule.ReplaceAllStringFunc(answer, func(part string) string {
		var fields struct{ Rule string }
		if json.Unmarshal([]byte(rule.FindStringSubmatch(part)[1]), &fields) != nil {
			return part
		}
		return fmt.Sprintf("Invalid value: %q: ", fields.Rule)
	})
}

// maxServedWait is how long an API server may take to serve a new CustomResourceDefinition.
const maxServedWait = 30 * time.Second

// waitUntilServed waits until the API server serves the CRDs. kubectl wait fails if the server has
// not written any condition yet.
func (c crds) waitUntilServed(ctx context.Context, k kubectl) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxServedWait,
		fmt.Errorf("not served after %s: %s", maxServedWait, strings.Join(c.names(), ", ")))
	defer cancel()
	for {
		text, err := k.run(ctx, "", append([]string{"get", "--output=yaml", "crd"}, c.names()...)...)
		if err != nil {
			return err
		}
		served, err := areServed(text)
		if err != nil || served {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// areServed reports whether a CustomResourceDefinition, or each of a list of them, has the
// condition Established.
func areServed(text string) (bool, error) {
	type definition struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	var answer struct {
		definition
		Items []definition `json:"items"`
	}
	if err := yaml.Unmarshal([]byte(text), &answer); err != nil {
		return false, err
	}
	if len(answer.Items) == 0 {
		answer.Items = []definition{answer.definition}
	}
	return !slices.ContainsFunc(answer.Items, func(d definition) bool {
		return !meta.IsStatusConditionTrue(d.Status.Conditions, "Established")
	}), nil
}

// names returns the names of the CustomResourceDefinitions.
func (c crds) names() []string {
	var names []string
	for _, item := range c.items {
		names = append(names, item.GetName())
	}
	return names
}
