package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/internal/plane/manifest"
)

const (
	// accountName is the name of the ServiceAccount that the operator runs as, and of its roles.
	accountName = "yare-dev"
	// accountNamespace is the namespace of the ServiceAccount, which counts as the namespace of the program.
	accountNamespace = "default"
	// tokenDuration is longer than anybody develops without a break.
	tokenDuration = 90 * 24 * time.Hour
	// maxGrantWait is how long an API server may take to observe new roles.
	maxGrantWait = 10 * time.Second
)

// object is the content of an object of Kubernetes.
type object = map[string]any

// permissions are the roles that an operator prints.
type permissions struct {
	// isUnknown is true for an operator that has no subcommand for permissions.
	isUnknown bool
	text      string
	roles     []unstructured.Unstructured
}

// askPermissions runs `OPERATOR permissions` with the arguments of the operator, and returns the permissions that the
// operator prints.
func askPermissions(ctx context.Context, binary, shown string, args []string) (permissions, error) {
	out, problems, err := runSubcommand(ctx, binary,
		append([]string{"permissions", "--namespace", accountNamespace}, args...)...)
	refused, isRefused := errors.AsType[*operatorError](err)
	switch {
	case context.Cause(ctx) != nil:
		return permissions{}, context.Cause(ctx)
	case isRefused:
		return permissions{}, refused
	case err != nil && strings.Contains(problems, `unknown command "permissions"`),
		errors.Is(err, context.DeadlineExceeded):
		return permissions{isUnknown: true}, nil
	case err != nil:
		return permissions{}, fmt.Errorf("%s: `permissions` failed (%w)%s", shown, err, indented(problems))
	}
	roles, err := manifest.Parse(out)
	if err != nil {
		return permissions{}, fmt.Errorf("%s: what `permissions` prints is not valid: %w", shown, err)
	}
	p := permissions{text: string(out), roles: roles}
	p.allowWebhookConfigurations()
	return p, nil
}

// allowWebhookConfigurations adds the permission to create webhook configurations, if p names some. In a cluster the
// installation makes them. In yare dev there is no installation, so the operator makes them.
func (p permissions) allowWebhookConfigurations() {
	if len(p.webhookConfigurations()) == 0 {
		return
	}
	for _, r := range p.roles {
		if rules, isFound, _ := unstructured.NestedSlice(r.Object, "rules"); isFound && r.GetKind() == "ClusterRole" {
			r.Object["rules"] = append(rules, object{
				"apiGroups": []any{"admissionregistration.k8s.io"},
				"resources": []any{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
				"verbs":     []any{"create"},
			})
			return
		}
	}
}

// account is the access of the operator to the cluster: as a ServiceAccount with the permissions that the
// operator prints, and no others.
type account struct {
	// path is the path of the kubeconfig. isWritten is true when the file exists.
	path      string
	isWritten bool
	// granted are the permissions that the operator has. They are nil before the first grant.
	granted *permissions
}

// grant gives the ServiceAccount the permissions p, and returns the path of its kubeconfig.
func (a *account) grant(ctx context.Context, k kubectl, p permissions) (kubeconfig string, err error) {
	if a.granted == nil || a.granted.text != p.text {
		if err := p.apply(ctx, k, a.granted); err != nil {
			return "", fmt.Errorf("grant the operator its permissions: %w", err)
		}
		a.granted = &p
	}
	if !a.isWritten {
		if err := writeAccount(ctx, k, a.path); err != nil {
			return "", fmt.Errorf("write a kubeconfig for the operator: %w", err)
		}
		a.isWritten = true
	}
	return a.path, nil
}

// apply makes the ServiceAccount and the roles, removes the roles that only before has, and waits until
// the server grants what the roles allow. before may be nil.
func (p permissions) apply(ctx context.Context, k kubectl, before *permissions) error {
	var items, namespaces []any
	items = append(items, object{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": accountName, "namespace": accountNamespace},
	})
	for _, r := range p.roles {
		metadata := object{"name": accountName}
		if namespace := r.GetNamespace(); namespace != "" {
			metadata["namespace"] = namespace
			if namespace != accountNamespace {
				namespaces = append(namespaces,
					object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace}})
			}
		}
		items = append(items,
			object{"apiVersion": r.GetAPIVersion(), "kind": r.GetKind(), "metadata": metadata, "rules": r.Object["rules"]},
			object{
				"apiVersion": r.GetAPIVersion(), "kind": r.GetKind() + "Binding", "metadata": metadata,
				"subjects": []any{object{"kind": "ServiceAccount", "name": accountName, "namespace": accountNamespace}},
				"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": r.GetKind(), "name": accountName},
			})
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": append(namespaces, items...)})
	if err != nil {
		return err
	}
	if _, err := k.run(ctx, string(text), "apply",
		"--server-side", "--force-conflicts", "--field-manager=yare-dev", "-f", "-"); err != nil {
		return err
	}
	if before != nil {
		if err := p.removeFormer(ctx, k, *before); err != nil {
			return err
		}
	}
	return p.waitUntilGranted(ctx, k)
}

// removeFormer deletes the roles of before that p does not have.
func (p permissions) removeFormer(ctx context.Context, k kubectl, before permissions) error {
	for _, r := range before.roles {
		if slices.ContainsFunc(p.roles, func(kept unstructured.Unstructured) bool {
			return kept.GetKind() == r.GetKind() && kept.GetNamespace() == r.GetNamespace()
		}) {
			continue
		}
		for _, kind := range []string{r.GetKind() + "Binding", r.GetKind()} {
			args := []string{"delete", strings.ToLower(kind), accountName, "--ignore-not-found"}
			if r.GetNamespace() != "" {
				args = append(args, "--namespace", r.GetNamespace())
			}
			if _, err := k.run(ctx, "", args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// webhookConfigurations returns the kind and the name of each webhook configuration that p names.
func (p permissions) webhookConfigurations() (all [][2]string) {
	for _, r := range p.roles {
		rules, _, _ := unstructured.NestedSlice(r.Object, "rules")
		for _, each := range rules {
			rule, _ := each.(object)
			for _, resource := range texts(rule, "resources") {
				if resource != "validatingwebhookconfigurations" && resource != "mutatingwebhookconfigurations" {
					continue
				}
				for _, name := range texts(rule, "resourceNames") {
					if entry := [2]string{resource, name}; !slices.Contains(all, entry) {
						all = append(all, entry)
					}
				}
			}
		}
	}
	return all
}

// removeFormerWebhooks deletes the webhook configurations that before names and p does not. A program without webhooks
// does not look for the configurations of the program that ran before, and the API server would go on calling.
func (p permissions) removeFormerWebhooks(ctx context.Context, k kubectl, before permissions) error {
	kept := p.webhookConfigurations()
	for _, each := range before.webhookConfigurations() {
		if !slices.Contains(kept, each) {
			if _, err := k.run(ctx, "", "delete", each[0], each[1], "--ignore-not-found"); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitUntilGranted waits until the API server has observed the roles. It does not wait for long: the
// operator tries again.
func (p permissions) waitUntilGranted(ctx context.Context, k kubectl) error {
	reviews := p.reviews()
	if len(reviews) == 0 {
		return nil
	}
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": reviews})
	if err != nil {
		return err
	}
	for until := time.Now().Add(maxGrantWait); ; {
		out, err := k.run(ctx, string(text), "create", "-f", "-", "-o", "yaml")
		if err != nil {
			return err
		}
		denied, err := isAnyDenied(out)
		if err != nil || !denied || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reviews returns a SubjectAccessReview for each permission on a resource.
func (p permissions) reviews() (reviews []any) {
	for _, r := range p.roles {
		rules, _, _ := unstructured.NestedSlice(r.Object, "rules")
		for _, each := range rules {
			rule, _ := each.(object)
			for _, group := range texts(rule, "apiGroups") {
				for _, resource := range texts(rule, "resources") {
					plural, subresource, _ := strings.Cut(resource, "/")
					for _, verb := range texts(rule, "verbs") {
						attributes := object{
							"namespace": r.GetNamespace(), "verb": verb, "group": group, "resource": plural, "subresource": subresource,
						}
						if names := texts(rule, "resourceNames"); len(names) > 0 {
							attributes["name"] = names[0]
						}
						reviews = append(reviews, object{
							"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
							"spec": object{
								"user": "system:serviceaccount:" + accountNamespace + ":" + accountName, "resourceAttributes": attributes,
							},
						})
					}
				}
			}
		}
	}
	return reviews
}

// texts returns a field of a rule that is a list of texts.
func texts(rule object, field string) []string {
	values, _, _ := unstructured.NestedStringSlice(rule, field)
	return values
}

// isAnyDenied reports whether one of the SubjectAccessReviews in text is not allowed.
func isAnyDenied(text string) (bool, error) {
	items, err := manifest.Parse([]byte(text))
	if err != nil {
		return false, err
	}
	for _, item := range items {
		reviews := []any{item.Object}
		if list, isList := item.Object["items"].([]any); isList {
			reviews = list
		}
		for _, each := range reviews {
			review, _ := each.(object)
			if isAllowed, _, _ := unstructured.NestedBool(review, "status", "allowed"); !isAllowed {
				return true, nil
			}
		}
	}
	return false, nil
}

// writeAccount writes the kubeconfig of k with the ServiceAccount as the only user.
func writeAccount(ctx context.Context, k kubectl, path string) error {
	token, err := k.run(ctx, "", "create", "token", accountName, "--namespace="+accountNamespace,
		"--duration="+tokenDuration.String())
	if err != nil {
		return err
	}
	text, err := os.ReadFile(k.kubeconfig)
	if err != nil {
		return err
	}
	config := make(object)
	if err := yaml.Unmarshal(text, &config); err != nil {
		return err
	}
	config["users"] = []any{object{"name": accountName, "user": object{"token": strings.TrimSpace(token)}}}
	contexts, _ := config["contexts"].([]any)
	for _, each := range contexts {
		entry, _ := each.(object)
		if content, ok := entry["context"].(object); ok {
			content["user"], content["namespace"] = accountName, accountNamespace
		}
	}
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
