package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Permission is a permission of a part of a program, besides the permissions that follow from its type
// and its sources (see [Controller.Needs]). It is an option of [New], and an argument of operator.Watcher
// and operator.Task. [Reads], [Writes] and [Allow] return one:
//
//	controller.New(reconcile,
//		controller.Owns[appsv1.Deployment](),
//		controller.Reads[corev1.Node](wire.VerbList),
//		controller.Writes[corev1.ConfigMap](wire.VerbCreate, wire.VerbPatch).InNamespaces("registry"),
//	)
//
// A request that no part declares fails in yare dev and in the tests of package yaretest, before it is
// sent. The error contains the expression to add. In a cluster the server refuses the request.
//
// A permission holds in the namespaces that the program watches, unless [Permission.InNamespaces] or
// [Permission.InOwnNamespace] names others. A permission for a cluster-scoped kind holds in the cluster.
// The methods return a changed copy. A mistake is an error of the part.
type Permission struct {
	access kube.Access
	// namespaces and isInOwnNamespace are set by InNamespaces and InOwnNamespace.
	namespaces       []string
	isInOwnNamespace bool
	// rule is the rule of Allow, or nil. access is empty if there is a rule.
	rule *kube.PolicyRule
	// function is the call that made the permission, for errors.
	function string
	goType   reflect.Type
	// kindErr is the reason why the kind is not known, or nil.
	kindErr error
	errs    []error
}

// Reads returns the permission to use verbs that read on objects of T: get, list and watch, or only
// the given verbs. A Get needs get, a List needs list, and a stream needs list and watch. The kinds
// that a controller reconciles, owns or watches need no Reads.
func Reads[T any, P kube.ObjectOf[T]](verbs ...wire.Verb) Permission {
	return newPermission("controller.Reads", P(new(T))).withReadVerbs(verbs)
}

// Writes returns the permission to use verbs that write on objects of T. An Apply needs create and
// patch; if the object always exists, patch alone. A Modify needs update. Reading is not included.
func Writes[T any, P kube.ObjectOf[T]](verbs ...wire.Verb) Permission {
	return newPermission("controller.Writes", P(new(T))).withWriteVerbs(verbs)
}

// Allow returns the permissions of a rule of RBAC, for what [Reads] and [Writes] cannot express, such as
// a URL that is no resource. Only such a rule can contain wildcards. The rule holds in the whole cluster,
// whatever namespaces the program watches.
func Allow(rule kube.PolicyRule) Permission {
	p := Permission{rule: &rule, function: "controller.Allow"}
	hasResources, hasURLs := len(rule.Resources) > 0, len(rule.NonResourceURLs) > 0
	switch {
	case len(rule.Verbs) == 0:
		p.reject(errors.New("the rule has no verbs"))
	case hasResources == hasURLs:
		p.reject(errors.New("the rule needs either Resources or NonResourceURLs"))
	case hasResources && len(rule.APIGroups) == 0:
		p.reject(errors.New(`the rule has no APIGroups: that of the core resources is ""`))
	}
	return p
}

// newPermission returns a permission for objects of the kind of zero.
func newPermission(function string, zero kube.Object) Permission {
	t := reflect.TypeOf(zero).Elem()
	kind, err := kube.TypeOfObject(zero)
	if err != nil && ident.StandsForAnyKind(t) {
		err = errors.New("the type stands for any kind: name the kind by the method Kind")
	}
	return Permission{access: kube.Access{Resource: kind.Resource}, function: function, goType: t, kindErr: err}
}

// withReadVerbs returns p with verbs that read, or with all of them if none is given.
func (p Permission) withReadVerbs(verbs []wire.Verb) Permission {
	if len(verbs) == 0 {
		verbs = readVerbs()
	}
	if i := slices.IndexFunc(verbs, wire.Verb.IsWrite); i >= 0 {
		p.reject(fmt.Errorf("%q does not read: declare it by controller.Writes", verbs[i]))
	}
	p.access.Verbs = slices.Clone(verbs)
	return p
}

// withWriteVerbs returns p with verbs that write.
func (p Permission) withWriteVerbs(verbs []wire.Verb) Permission {
	if len(verbs) == 0 {
		p.reject(errors.New("there are no verbs: name those that are used, such as wire.VerbCreate"))
	}
	p.reject(checkWriteVerbs(verbs))
	p.access.Verbs = slices.Clone(verbs)
	return p
}

// checkWriteVerbs returns an error unless verbs are verbs that write.
func checkWriteVerbs(verbs []wire.Verb) error {
	for _, verb := range verbs {
		switch {
		case verb == "":
			return errors.New("a verb is empty")
		case strings.Contains(string(verb), "*"):
			return fmt.Errorf("the verb %q is a wildcard: only the rule of controller.Allow can have one", verb)
		case !verb.IsWrite():
			return fmt.Errorf("%q does not write: declare it by controller.Reads", verb)
		}
	}
	return nil
}

// readVerbs returns all verbs that read.
func readVerbs() []wire.Verb { return []wire.Verb{wire.VerbGet, wire.VerbList, wire.VerbWatch} }

// reject records why p is not valid. A nil err is ignored.
func (p *Permission) reject(err error) {
	if err != nil {
		p.errs = append(p.errs[:len(p.errs):len(p.errs)], err)
	}
}

// rejectRule records an error if p is a rule, because a rule itself states what it allows.
func (p *Permission) rejectRule(method string) {
	if p.rule != nil {
		p.reject(fmt.Errorf("the method %s cannot narrow a rule: write it into the rule", method))
	}
}

// Kind returns p for the kind r. It is for a Go type that stands for any kind: unstructured.Unstructured,
// or metav1.PartialObjectMetadata.
func (p Permission) Kind(r wire.Resource) Permission {
	p.rejectRule("Kind")
	switch {
	case p.goType == nil:
	case !ident.StandsForAnyKind(p.goType):
		p.reject(fmt.Errorf("the type has a kind of its own: leave Kind(%s) out", r))
	case r.Plural == "":
		p.reject(errors.New("the kind is not complete: the field Plural is empty"))
	default:
		p.access.Resource, p.kindErr = r, nil
	}
	return p
}

// Subresource returns p for a subresource of the objects, such as status or eviction, and not for the
// objects themselves.
func (p Permission) Subresource(name string) Permission {
	p.rejectRule("Subresource")
	if name == "" || strings.ContainsAny(name, "*/") {
		p.reject(fmt.Errorf("the subresource %q is not valid: name one, such as status", name))
	}
	p.access.Subresource = name
	return p
}

// Named returns p for the objects of these names only. The server then allows lists and watches only by a
// field selector for one of the names. A create names its object only if it is an apply.
func (p Permission) Named(names ...string) Permission {
	p.rejectRule("Named")
	if len(names) == 0 || slices.Contains(names, "") {
		p.reject(errors.New("a name of Named is missing or empty: without names leave Named out"))
	}
	p.access.Names = append(slices.Clone(p.access.Names), names...)
	return p
}

// InNamespaces returns p for these namespaces, and no others, whatever namespaces the program watches.
// With InOwnNamespace the program's own namespace is added.
func (p Permission) InNamespaces(namespaces ...string) Permission {
	p.rejectRule("InNamespaces")
	if len(namespaces) == 0 {
		p.reject(errors.New("InNamespaces has no namespaces: without any leave it out"))
	}
	for _, name := range namespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			p.reject(fmt.Errorf("the namespace %q is not valid: %s", name, problems[0]))
		}
	}
	p.namespaces = append(slices.Clone(p.namespaces), namespaces...)
	return p
}

// InOwnNamespace returns p for the namespace that the program is installed in ([Runtime]), and no others.
func (p Permission) InOwnNamespace() Permission {
	p.rejectRule("InOwnNamespace")
	p.isInOwnNamespace = true
	return p
}

// err returns what is wrong with p, or nil.
func (p Permission) err() error {
	if p.function == "" {
		return errors.New(
			"a controller.Permission is empty: make it by controller.Reads, controller.Writes or controller.Allow")
	}
	errs := append(slices.Clone(p.errs), p.kindErr)
	switch resource := p.access.Resource; {
	case resource.ClusterScoped && (p.isInOwnNamespace || len(p.namespaces) > 0):
		errs = append(errs, fmt.Errorf("%s live outside of namespaces: leave InNamespaces and InOwnNamespace out", resource))
	case len(p.access.Names) > 0 && slices.Contains(p.access.Verbs, wire.VerbDeleteCollection):
		errs = append(errs, errors.New("a deletecollection has no name: leave Named out"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", p.call(), err)
	}
	return nil
}

// call returns the Go expression that made p, without its arguments.
func (p Permission) call() string {
	if p.goType == nil {
		return p.function
	}
	return fmt.Sprintf("%s[%s]", p.function, ident.GoTypeName(p.goType))
}

// Needs returns the permission as a part of a program declares it, or an error with the mistakes in it.
func (p Permission) Needs() (kube.Needs, error) {
	if err := p.err(); err != nil {
		return kube.Needs{}, err
	}
	var needs kube.Needs
	p.addTo(&needs)
	return needs, nil
}

// addTo adds p to needs.
func (p Permission) addTo(needs *kube.Needs) {
	if p.rule != nil {
		needs.Rules = append(needs.Rules, *p.rule)
		return
	}
	needs.Access = append(needs.Access, accessIn(p.access, p.namespaces, p.isInOwnNamespace)...)
}

// applyTo makes p an [Option].
func (p Permission) applyTo(s *settings) {
	s.reject(p.err())
	s.permissions = append(s.permissions, p)
}

// accessIn returns a for these namespaces and, if isInOwnNamespace is true, for the namespace of the program.
// Without either it returns a for the namespaces that the program watches.
//
//go:noinline
func accessIn(a kube.Access, namespaces []string, isInOwnNamespace bool) []kube.Access {
	if len(namespaces) == 0 && !isInOwnNamespace {
		return []kube.Access{a}
	}
	var all []kube.Access
	if len(namespaces) > 0 {
		narrowed := a
		narrowed.Namespaces = slices.Clone(namespaces)
		all = append(all, narrowed)
	}
	if isInOwnNamespace {
		a.OwnNamespace = true
		all = append(all, a)
	}
	return all
}
