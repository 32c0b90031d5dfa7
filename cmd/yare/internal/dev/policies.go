package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/plane/manifest"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/kube"
)

// policies are the admission policies, with their bindings, that an operator prints among its manifests. The parts of
// package operator/admissionpolicy bring them.
type policies struct {
	// text is the content of items. It is empty without a policy.
	text  string
	items []unstructured.Unstructured
}

// askPolicies runs `OPERATOR manifests` with the arguments of the operator, and returns the policies that the operator
// prints.
func askPolicies(ctx context.Context, binary, shown string, args []string) (policies, error) {
	command := []string{"manifests", "--image", "dev", "--namespace", accountNamespace}
	out, problems, err := runSubcommand(ctx, binary, append(command[:len(command):len(command)], args...)...)
	if _, isRefused := errors.AsType[*operatorError](err); isRefused && len(args) > 0 {
		// The arguments may be right on this machine and wrong in a Pod, such as --listen 127.0.0.1:8080.
		out, problems, err = runSubcommand(ctx, binary, command...)
	}
	switch {
	case context.Cause(ctx) != nil:
		return policies{}, context.Cause(ctx)
	case err != nil && strings.Contains(problems, `unknown command "manifests"`):
		return policies{}, nil
	case err != nil:
		return policies{}, fmt.Errorf("%s: `manifests` failed (%w)%s", shown, err, indented(problems))
	}
	objects, err := manifest.Parse(out)
	if err != nil {
		return policies{}, fmt.Errorf("%s: what `manifests` prints is not valid: %w", shown, err)
	}
	items := policy.Select(objects)
	if len(items) == 0 {
		return policies{}, nil
	}
	text, err := json.Marshal(items)
	return policies{text: string(text), items: items}, err
}

// apply applies the policies as administrator, and removes the policies that only former has. If a policy has a
// mistake, apply changes nothing. apply calls report with texts for the user.
func (p policies) apply(ctx context.Context, kubeconfig string, former policies, report func(string)) error {
	config, _, err := kube.ConfigSource{Kubeconfig: kubeconfig}.Load()
	if err != nil {
		return err
	}
	client, err := kube.NewClient(config)
	if err != nil {
		return err
	}
	if len(p.items) > 0 {
		if err := policy.Apply(ctx, client, p.items, report); err != nil {
			return err
		}
	}
	return policy.Remove(ctx, client, p.missingFrom(former))
}

// missingFrom returns the policies of former that p lacks.
func (p policies) missingFrom(former policies) (missing []unstructured.Unstructured) {
	for _, before := range former.items {
		if !slices.ContainsFunc(p.items, func(kept unstructured.Unstructured) bool {
			return kept.GetKind() == before.GetKind() && kept.GetName() == before.GetName()
		}) {
			missing = append(missing, before)
		}
	}
	return missing
}
