// Package access turns what a program needs into rules of RBAC, and checks requests against them.
//
// [For] returns the rules. They grant what the parts of the program declare, and nothing else.
// [Checker.MissingVerbs] decides about a request as the authorizer of an API server with these rules does.
// [Checker.Declaration] returns the Go expression to declare a request that the rules do not allow.
package access

import (
	"context"
	"maps"
	"slices"

	"github.com/yare-go/yare/kube"
)

// Grants are the rules of RBAC that a program needs, by the place where they hold. Equal needs give
// equal Grants, whatever the order of the parts.
type Grants struct {
	// Cluster are the rules for all namespaces, and for resources outside of namespaces.
	Cluster []kube.PolicyRule
	// Own are the rules for the namespace that the program is installed in.
	Own []kube.PolicyRule
	// Namespaced are the rules for single namespaces, by the names of the namespaces.
	Namespaced map[string][]kube.PolicyRule
}

// For returns the grants of a program that watches these namespaces, or all namespaces if there are
// none.
//
// A permission on a cluster-scoped resource becomes a rule of Cluster. [kube.Needs.Rules] become rules of
// Cluster too, because a rule does not show whether its resources live in namespaces. Permissions that
// Cluster grants are not repeated for single namespaces.
func For(needs kube.Needs, watched []string) Grants {
	cluster, own, namespaced := make(permissions), make(permissions), make(map[string]permissions)
	for _, a := range needs.Access {
		namespaces := a.Namespaces
		if len(namespaces) == 0 && !a.OwnNamespace {
			namespaces = watched
		}
		switch {
		case a.Resource.ClusterScoped:
			cluster.add(a)
			continue
		case a.OwnNamespace:
			own.add(a)
		case len(namespaces) == 0:
			cluster.add(a)
		}
		for _, name := range namespaces {
			if namespaced[name] == nil {
				namespaced[name] = make(permissions)
			}
			namespaced[name].add(a)
		}
	}
	grants := Grants{Cluster: append(cluster.rules(), sortedRules(needs.Rules)...), Own: own.minus(cluster).rules()}
	for name, p := range namespaced {
		if rules := p.minus(cluster).rules(); len(rules) > 0 {
			if grants.Namespaced == nil {
				grants.Namespaced = make(map[string][]kube.PolicyRule)
			}
			grants.Namespaced[name] = rules
		}
	}
	return grants
}

// sortedRules returns rules in a certain order, each once.
func sortedRules(rules []kube.PolicyRule) []kube.PolicyRule {
	// Texts are sorted in place of the rules: slices.SortFunc would be compiled once more for the rules.
	byText := make(map[string]kube.PolicyRule, len(rules))
	for _, rule := range rules {
		byText[sortText(rule)] = rule
	}
	var sorted []kube.PolicyRule
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		sorted = append(sorted, byText[text])
	}
	return sorted
}

// Retainer keeps what the cleanups in a namespace need, such as the Role of the program there, while objects of the
// namespace have finalizers of the program. Its methods must be safe for concurrent use.
type Retainer interface {
	// Retain is called before a controller adds its finalizer to an object of a namespace, and before it reconciles an
	// object that has the finalizer. An error fails the reconcile. The controller calls written once it adds no finalizer
	// any more.
	Retain(ctx context.Context, namespace string) (written func(), err error)
	// RecordRemoval is called after a controller has removed its finalizers from an object of a namespace.
	RecordRemoval(namespace string)
}

type retainerKey struct{}

// WithRetainer returns a context for the parts of a program whose permissions r keeps.
func WithRetainer(ctx context.Context, r Retainer) context.Context {
	return context.WithValue(ctx, retainerKey{}, r)
}

// RetainerFrom returns the Retainer of [WithRetainer]. It returns nil in a program that watches all namespaces.
func RetainerFrom(ctx context.Context) Retainer {
	r, _ := ctx.Value(retainerKey{}).(Retainer)
	return r
}
