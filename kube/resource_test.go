package kube

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

type foreign struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

type pointerWrapped struct{ *corev1.ConfigMap }

func (pointerWrapped) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "PointerWrapped"}
}

type badKind struct{ foreign }

func (badKind) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "web app"}
}

type panicking struct{ foreign }

func (p *panicking) Definition() Definition {
	panic("not on the zero value")
}

func TestResourceOfType(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		obj     Object
		want    string // apiVersion, kind, plural, scope
		status  bool
		defined bool
	}{
		{&corev1.Pod{}, "v1 Pod pods namespaced", true, false},
		{&corev1.ConfigMap{}, "v1 ConfigMap configmaps namespaced", false, false},
		{&corev1.Endpoints{}, "v1 Endpoints endpoints namespaced", false, false},
		{&corev1.Namespace{}, "v1 Namespace namespaces cluster", true, false},
		{&appsv1.Deployment{}, "apps/v1 Deployment deployments namespaced", true, false},
		{&rbacv1.ClusterRole{}, "rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster", false, false},
		{&gadget{}, "example.com/v1 Gadget gadgets namespaced", true, true},
		{(*gadget)(nil), "example.com/v1 Gadget gadgets namespaced", true, true},
		{&planet{}, "example.com/v1 Planet planets cluster", false, true},
		{&wrapped{}, "example.com/v1 Wrapped wrappeds namespaced", false, true},
		{&pointerWrapped{}, "example.com/v1 PointerWrapped pointerwrappeds namespaced", false, true},
	} {
		got, err := TypeOfObject(test.obj)
		if err != nil {
			t.Errorf("%T: %v", test.obj, err)
			continue
		}
		scope := "namespaced"
		if got.Resource.ClusterScoped {
			scope = "cluster"
		}
		apiVersion, kind := got.Resource.ToAPIVersionAndKind()
		if text := strings.Join([]string{apiVersion, kind, got.Resource.Plural, scope}, " "); text != test.want {
			t.Errorf("%T is %s, want %s", test.obj, text, test.want)
		}
		if got.HasStatus() != test.status || (got.Definition != nil) != test.defined {
			t.Errorf("%T: HasStatus is %t, Definition %v", test.obj, got.HasStatus(), got.Definition)
		}
	}
	byType, err := ResourceOf[gadget]()
	if err != nil || byType.String() != "gadgets.example.com" {
		t.Errorf("ResourceOf gives %s: %v", byType, err)
	}
}

// The error of a type without a resource contains the remedy.
func TestTypesWithoutResource(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		obj  Object
		want []string
	}{
		{nil, []string{"no pointer to an object"}},
		{&foreign{}, []string{"the resource of kube.foreign is not known: wrap it, as in type foreign struct{ kube.foreign }, and give that a Definition method"}},
		{&unstructured.Unstructured{}, []string{"use kube.Dynamic and name the resource"}},
		{&metav1.PartialObjectMetadata{}, []string{"use kube.Metadata and name the resource"}},
		{&autoscalingv1.Scale{}, []string{"v1.Scale: an API server does not serve this type as a resource of its own"}},
		{&policyv1.Eviction{}, []string{"v1.Eviction"}},
		{&badKind{}, []string{"kube.badKind", `Kind "web app" is not valid`}},
		{&panicking{}, []string{"kube.panicking", "Definition method must work on the zero value"}},
	} {
		_, err := TypeOfObject(test.obj)
		wantError(t, err, test.want...)
	}
	_, err := TypeOf[CustomResource[emptySpec, None]]()
	wantError(t, err, "the custom resource of kube.emptySpec: the Definition has no Group")
}

type emptySpec struct{}

func (emptySpec) Definition() Definition { return Definition{} }

func TestDefinitionIsChecked(t *testing.T) {
	t.Parallel()
	good := Definition{Group: "example.com", Version: "v1", Kind: "WebApp"}
	for _, test := range []struct {
		name   string
		change func(*Definition)
		want   string // the plural, or the error
		ok     bool
	}{
		{"good", func(*Definition) {}, "webapps", true},
		{"plural", func(d *Definition) { d.Plural = "apps" }, "apps", true},
		{"alpha", func(d *Definition) { d.Version = "v1alpha1" }, "webapps", true},
		{"no group", func(d *Definition) { d.Group = "" }, "the Definition has no Group", false},
		{"no version", func(d *Definition) { d.Version = "" }, "the Definition has no Version", false},
		{"no kind", func(d *Definition) { d.Kind = "" }, "the Definition has no Kind", false},
		{"bad group", func(d *Definition) { d.Group = "Example.com" }, `the Definition's Group "Example.com" is not valid`, false},
		{"bad version", func(d *Definition) { d.Version = "1" }, `Version "1" is not valid`, false},
		{"version with a slash", func(d *Definition) { d.Version = "v1/x" }, `Version "v1/x" is not valid`, false},
		{"bad kind", func(d *Definition) { d.Kind = "Web_App" }, `Kind "Web_App" is not valid`, false},
		{"small kind", func(d *Definition) { d.Kind = "webApp" }, "must begin with a capital letter", false},
		{"bad plural", func(d *Definition) { d.Plural = "WebApps" }, `Plural "WebApps" is not valid`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := good
			test.change(&d)
			r, err := d.Resource()
			if !test.ok {
				wantError(t, err, test.want)
			} else if err != nil || r.Plural != test.want {
				t.Errorf("the resource is %+v: %v", r, err)
			}
		})
	}
}

// Every type of k8s.io/api that has metadata is in the table, or stands for no resource by a
// rule.
func TestTableKnowsEveryBuiltinType(t *testing.T) {
	t.Parallel()
	// Bodies of subresources, and what the server keeps to itself.
	noResource := map[string]bool{"Scale": true, "Eviction": true, "TokenRequest": true, "RangeAllocation": true, "PodStatusResult": true}
	seen := 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		obj, ok := reflect.New(typ).Interface().(Object)
		if !ok || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			continue
		}
		seen++
		got, err := TypeOfObject(obj)
		if noResource[gvk.Kind] && gvk.Group != "lifecycle.k8s.io" {
			if err == nil {
				t.Errorf("%s is a resource %s", gvk, got.Resource)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
		} else if got.Resource.GroupVersionKind != gvk {
			t.Errorf("%s is taken for %s", gvk, got.Resource.GroupVersionKind)
		}
	}
	if seen < 150 {
		t.Errorf("looked at %d types only", seen)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	r, err := ResourceOf[appsv1.Deployment]()
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		r.String(): "deployments.apps",
		wire.Ref{Resource: r, Namespace: "ns", Name: "d"}.String():               `deployments.apps "ns/d"`,
		wire.Ref{Resource: r, Name: "d"}.String():                                `deployments.apps "d"`,
		ident.GoTypeName(reflect.TypeFor[gadget]()):                              "the custom resource of kube.gadgetSpec",
		ident.GoTypeName(reflect.TypeFor[corev1.Pod]()):                          "v1.Pod",
		wire.Stream{Resource: r, Namespace: "ns", LabelSelector: "a=b"}.String(): `deployments.apps in namespace "ns" with "a=b"`,
	} {
		if got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}
