package kube_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Port is a port. All fields of this type have its bounds in the CustomResourceDefinition.
type Port int32

// CRDTag implements [kube.Tagged].
func (Port) CRDTag() string { return "minimum=1,maximum=65535" }

// SiteSpec is the desired state of a site.
type SiteSpec struct {
	Replicas int32 `json:"replicas"`
	Port     Port  `json:"port"`
}

// SiteStatus is the observed state of a site.
type SiteStatus struct {
	Replicas int32 `json:"replicas"`
}

// Definition has columns for kubectl get, and the paths for kubectl scale.
func (SiteSpec) Definition() kube.Definition {
	return kube.Definition{
		Group: "example.com", Version: "v1", Kind: "Site",
		Columns: []kube.Column{{Name: "Port", JSONPath: ".spec.port", Type: "integer"}},
		Scale:   &kube.ScalePaths{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"},
	}
}

// Site embeds the custom resource, so that it can have methods.
type Site struct {
	kube.CustomResource[SiteSpec, SiteStatus]
}

// nameOf is a function for all objects with a Definition. A parameter P kube.ObjectOf[T] takes all types of objects.
func nameOf[T any, P kube.DefinedObjectOf[T]](o *T) (string, error) {
	r, err := P(o).Definition().Resource()
	return r.String() + "/" + P(o).GetName(), err
}

// labelsOf returns the labels of any object.
func labelsOf[T any, P kube.ObjectOf[T]](o *T) map[string]string { return P(o).GetLabels() }

// A library on top of yare takes any type of object. These constraints and interfaces say what it needs of a type.
func ExampleDefinition_Resource() {
	site := &Site{}
	site.Name = "shop"
	fmt.Println(nameOf(site))
	fmt.Println(labelsOf(&corev1.Pod{}))
	var defined kube.Defined = site.Spec            // the spec has the Definition,
	var _ kube.DefinedBy[SiteSpec] = site.DefinedBy // and the resource gets it by an embedded type
	var tagged kube.Tagged = site.Spec.Port         // a type with a tag for all of its values
	kind, err := kube.TypeOfObject(site)            // for a type that is known only at run time
	fmt.Println(defined.Definition().Kind, tagged.CRDTag(), kind.Resource, kind.HasStatus(), err)
	// Output:
	// sites.example.com/shop <nil>
	// map[]
	// Site minimum=1,maximum=65535 sites.example.com true <nil>
}

// controller-runtime and client-go take a custom resource as a runtime.Object. Their schemes also need a list.
func ExampleCustomResourceList() {
	scheme, version := runtime.NewScheme(), schema.GroupVersion{Group: "example.com", Version: "v1"}
	scheme.AddKnownTypeWithName(version.WithKind("WebApp"), &WebApp{})
	scheme.AddKnownTypeWithName(version.WithKind("WebAppList"), &kube.CustomResourceList[WebApp]{})
	app := &WebApp{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: WebAppSpec{Replicas: 3}}
	copied := app.DeepCopyObject().(*WebApp)
	copied.Spec.Replicas = 1
	list := &kube.CustomResourceList[WebApp]{Items: []WebApp{*app}}
	again := list.DeepCopyObject().(*kube.CustomResourceList[WebApp])
	fmt.Println(app.Spec.Replicas, len(again.Items), app.GetObjectKind() != nil)
	key := kube.KeyOf(types.NamespacedName{Namespace: "default", Name: "shop"})
	fmt.Println(key.NamespacedName())
	// Output:
	// 3 1 true
	// default/shop
}

// podPhase has the fields of a Pod that a program needs. It implements [kube.Projected].
type podPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// Projection returns the kind.
func (podPhase) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }

// An index answers which objects have a value, without a request. Handlers check and evaluate indexes by Check and Values.
func ExampleIndex_Values() {
	byNode := kube.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	var projected kube.Projected = &podPhase{}
	pods, err := projected.Projection()
	fmt.Println(byNode.Check(pods, wire.Full), err)
	pod, err := kube.Marshal(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(byNode.Values(pod))
	var index *kube.Index = byNode // in controller.Index and controller.WatchesReferenced
	fmt.Println(index)
	// Output:
	// <nil> <nil>
	// [n1] <nil>
	// node
}

// A configuration of the program's own: another user, a credential plugin, a limit of writes, and warnings of the server.
func ExampleConfig() {
	base := &kube.Config{
		Host: "https://cluster.example.com",
		Exec: &kube.ExecConfig{Command: "cloud-credentials", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"},
	}
	config := base.Clone()
	config.Impersonate = kube.Impersonation{UserName: "robot", Groups: []string{"ci"}}
	config.Timeout, config.MaxWrites = time.Minute, 8
	config.OnWarning = func(_ context.Context, r *wire.Request, text string) { fmt.Println(r.Verb, text) }
	client, err := kube.NewClient(config)
	fmt.Println(config, err)
	_ = client.With // and a handler of the program's own

	// For code that speaks HTTP itself, such as a proxy. An anonymous copy has no credentials.
	transport, err := kube.NewRoundTripper(base.Anonymous())
	fmt.Println(err)
	var _ = http.Client{Transport: transport}
	// Output:
	// kube.Config{Host: "https://cluster.example.com", Credentials: "credential plugin", Impersonate: "robot"} <nil>
	// <nil>
}

// A request that no type covers: Do passes it through the handlers of the client.
func ExampleClient_Do() {
	server := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		return &wire.Response{Code: http.StatusOK, Body: []byte(`{"kind":"APIGroupList"}`)}, nil
	})
	response, err := kube.NewClientFromHandler(server).Do(context.Background(), &wire.Request{Verb: wire.VerbGet})
	fmt.Println(string(response.Body), err)
	// Output: {"kind":"APIGroupList"} <nil>
}

// Owners in a record of a controller have no version: an owner is the same object in all versions of its kind.
func ExampleOwner() {
	isOwnedBy := func(owners []kube.Owner, kind, name string) bool {
		for _, o := range owners {
			if o.Kind == kind && o.Name == name && o.Controller {
				return true
			}
		}
		return false
	}
	fmt.Println(isOwnedBy([]kube.Owner{{Group: "apps", Kind: "ReplicaSet", Name: "web-1", Controller: true}}, "ReplicaSet", "web-1"))
	// Output: true
}
