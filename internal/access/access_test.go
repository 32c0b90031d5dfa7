package access_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

func resource(group, kind, plural string) wire.Resource {
	return wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Plural: plural}
}

var (
	apps        = resource("example.com", "WebApp", "webapps")
	deployments = resource("apps", "Deployment", "deployments")
	replicaSets = resource("apps", "ReplicaSet", "replicasets")
	configMaps  = resource("", "ConfigMap", "configmaps")
	leases      = resource("coordination.k8s.io", "Lease", "leases")
	nodes       = wire.Resource{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes", ClusterScoped: true}
)

const (
	get    = wire.VerbGet
	list   = wire.VerbList
	watch  = wire.VerbWatch
	create = wire.VerbCreate
	update = wire.VerbUpdate
	patch  = wire.VerbPatch
	remove = wire.VerbDelete
)

func on(r wire.Resource, verbs ...wire.Verb) kube.Access {
	return kube.Access{Resource: r, Verbs: verbs}
}

// needs returns the needs of a program with every kind of permission.
func needs() kube.Needs {
	status, finalizers := on(apps, patch), on(apps, update)
	status.Subresource, finalizers.Subresource = "status", "finalizers"
	named, namedAgain, namedMore := on(configMaps, get), on(configMaps, get, patch), on(configMaps, list, patch)
	named.Names, namedAgain.Names, namedMore.Names = []string{"b"}, []string{"a"}, []string{"b"}
	elsewhere, repeated := on(configMaps, list), on(deployments, get, remove)
	elsewhere.Namespaces, repeated.Namespaces = []string{"kube-system"}, []string{"kube-system"}
	own := on(leases, get, create, update)
	own.OwnNamespace = true
	return kube.Needs{
		Access: []kube.Access{
			on(apps, watch, list, get), on(apps, get, patch), status, finalizers,
			on(deployments, patch, create, get, list, watch), on(replicaSets, get, list, watch, create, patch),
			named, namedAgain, namedMore, elsewhere, repeated, own, on(nodes, get),
		},
		Rules: []kube.PolicyRule{
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/version"}},
			{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"*"}},
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/version"}},
		},
	}
}

// rule returns a rule on resources of one group.
func rule(group string, resources, verbs []string, names ...string) kube.PolicyRule {
	return kube.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs, ResourceNames: names}
}

type words = []string

func TestGrants(t *testing.T) {
	t.Parallel()
	narrow := []kube.PolicyRule{
		rule("", words{"configmaps"}, words{"get", "list", "patch"}, "b"),
		rule("", words{"configmaps"}, words{"get", "patch"}, "a"),
		rule("apps", words{"deployments", "replicasets"}, words{"get", "list", "watch", "create", "patch"}),
		rule("example.com", words{"webapps"}, words{"get", "list", "watch", "patch"}),
		rule("example.com", words{"webapps/finalizers"}, words{"update"}),
		rule("example.com", words{"webapps/status"}, words{"patch"}),
	}
	// The names of rules that are otherwise equal decide about their order.
	narrow[0], narrow[1] = narrow[1], narrow[0]
	node := rule("", words{"nodes"}, words{"get"})
	raw := []kube.PolicyRule{
		{Verbs: words{"get"}, NonResourceURLs: words{"/version"}},
		{APIGroups: words{"*"}, Resources: words{"*/scale"}, Verbs: words{"*"}},
	}
	lease := []kube.PolicyRule{rule("coordination.k8s.io", words{"leases"}, words{"get", "create", "update"})}
	elsewhere := rule("", words{"configmaps"}, words{"list"})
	for name, c := range map[string]struct {
		watched []string
		want    access.Grants
	}{
		"everywhere": {nil, access.Grants{
			Cluster: append(append(narrow[:2:2], node), append(narrow[2:len(narrow):len(narrow)], raw...)...),
			Own:     lease,
			Namespaced: map[string][]kube.PolicyRule{"kube-system": {
				elsewhere, rule("apps", words{"deployments"}, words{"delete"}),
			}},
		}},
		"in two namespaces": {[]string{"two", "one"}, access.Grants{
			Cluster: append([]kube.PolicyRule{node}, raw...),
			Own:     lease,
			Namespaced: map[string][]kube.PolicyRule{"one": narrow, "two": narrow, "kube-system": {
				elsewhere, rule("apps", words{"deployments"}, words{"get", "delete"}),
			}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := needs()
			for range 20 {
				if diff := cmp.Diff(c.want, access.For(n, c.watched)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				rand.Shuffle(len(n.Access), func(i, j int) { n.Access[i], n.Access[j] = n.Access[j], n.Access[i] })
				rand.Shuffle(len(n.Rules), func(i, j int) { n.Rules[i], n.Rules[j] = n.Rules[j], n.Rules[i] })
			}
		})
	}
	if diff := cmp.Diff(access.Grants{}, access.For(kube.Needs{}, nil)); diff != "" {
		t.Errorf("without needs (-want +got):\n%s", diff)
	}
}

// in returns a request in a namespace.
func in(namespace string, verb wire.Verb, r wire.Resource, name string) *wire.Request {
	return &wire.Request{Verb: verb, Resource: r, Namespace: namespace, Name: name}
}

func TestChecker(t *testing.T) {
	t.Parallel()
	change := func(r *wire.Request, f func(*wire.Request)) *wire.Request { f(r); return r }
	apply := func(r *wire.Request) { r.ContentType = wire.ContentApply }
	for name, c := range map[string]struct {
		watched []string
		request *wire.Request
		missing []wire.Verb
		// want is what declares the missing verbs.
		want string
	}{
		"declared":                       {nil, in("x", get, apps, "a"), nil, ""},
		"declared for all namespaces":    {nil, in("", watch, apps, ""), nil, ""},
		"another verb":                   {nil, in("x", remove, apps, "a"), []wire.Verb{remove}, "controller.Writes[WebApp](wire.VerbDelete)"},
		"a subresource":                  {nil, change(in("x", patch, apps, "a"), func(r *wire.Request) { r.Subresource = "status" }), nil, ""},
		"another verb of a subresource":  {nil, change(in("x", update, apps, "a"), func(r *wire.Request) { r.Subresource = "status" }), []wire.Verb{update}, `controller.Writes[WebApp](wire.VerbUpdate).Subresource("status")`},
		"a wildcard":                     {nil, change(in("x", patch, replicaSets, "a"), func(r *wire.Request) { r.Subresource = "scale" }), nil, ""},
		"an apply that may create":       {nil, change(in("x", patch, apps, "a"), apply), []wire.Verb{create}, "controller.Writes[WebApp](wire.VerbCreate)"},
		"an apply that cannot create":    {nil, change(in("x", patch, apps, "a"), func(r *wire.Request) { apply(r); r.Preconditions.UID = "u" }), nil, ""},
		"an apply of an undeclared kind": {nil, change(in("x", patch, leases, "a"), apply), []wire.Verb{create, patch}, "controller.Writes[coordinationv1.Lease](wire.VerbCreate, wire.VerbPatch)"},
		"a name":                         {nil, in("x", get, configMaps, "a"), nil, ""},
		"another name":                   {nil, in("x", get, configMaps, "c"), []wire.Verb{get}, "controller.Reads[corev1.ConfigMap](wire.VerbGet)"},
		"the name in a field selector": {nil, change(in("x", list, configMaps, ""), func(r *wire.Request) {
			r.Query = map[string][]string{"fieldSelector": {"metadata.name=b"}}
		}), nil, ""},
		"all names":                        {nil, in("x", watch, configMaps, ""), []wire.Verb{watch}, "controller.Reads[corev1.ConfigMap]()"},
		"a namespace":                      {nil, in("kube-system", list, configMaps, ""), nil, ""},
		"outside of namespaces":            {[]string{"x"}, in("", get, nodes, "n"), nil, ""},
		"undeclared outside of namespaces": {[]string{"x"}, in("", list, nodes, ""), []wire.Verb{list}, "controller.Reads[corev1.Node](wire.VerbList)"},
		"a watched namespace":              {[]string{"x"}, in("x", get, apps, "a"), nil, ""},
		"a namespace that is not watched":  {[]string{"x"}, in("y", get, apps, "a"), []wire.Verb{get}, `controller.Reads[WebApp](wire.VerbGet).InNamespaces("y")`},
		"all namespaces of a program that watches one": {[]string{"x"}, in("", list, deployments, ""), []wire.Verb{list},
			`controller.Allow(kube.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}})`},
		"the own namespace":             {[]string{"x"}, in("home", update, leases, "l"), nil, ""},
		"not the own namespace":         {[]string{"x"}, in("x", update, leases, "l"), []wire.Verb{update}, "controller.Writes[coordinationv1.Lease](wire.VerbUpdate)"},
		"undeclared, the own namespace": {[]string{"x"}, in("home", remove, leases, "l"), []wire.Verb{remove}, "controller.Writes[coordinationv1.Lease](wire.VerbDelete).InOwnNamespace()"},
		"discovery":                     {nil, in("", get, wire.Resource{GroupVersionKind: apps.GroupVersionKind}, ""), nil, ""},
		"a review of oneself":           {nil, in("", create, wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}, Plural: "selfsubjectaccessreviews", ClusterScoped: true}, ""), nil, ""},
		"a review of others":            {nil, in("", create, wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}, Plural: "subjectaccessreviews", ClusterScoped: true}, ""), []wire.Verb{create}, "controller.Writes[authorizationv1.SubjectAccessReview](wire.VerbCreate)"},
		"a custom resource of another project": {nil, in("x", get, resource("cert-manager.io", "Certificate", "certificates"), "a"), []wire.Verb{get},
			"controller.Reads[Certificate](wire.VerbGet)"},
		"another cluster": {nil, change(in("x", remove, apps, "a"), func(r *wire.Request) { r.Cluster = "other" }), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checker := access.NewChecker(needs(), c.watched, "home")
			missing := checker.MissingVerbs(c.request)
			if diff := cmp.Diff(c.missing, missing); diff != "" && len(c.missing)+len(missing) > 0 {
				t.Fatalf("missing (-want +got):\n%s", diff)
			}
			if len(missing) == 0 {
				return
			}
			if got := checker.Declaration(c.request, missing); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
