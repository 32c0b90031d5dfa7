package kube_test

import (
	"context"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// WebAppSpec is the desired state of a web application.
type WebAppSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

// Definition implements [kube.Defined].
func (WebAppSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "WebApp"}
}

// WebApp is the whole custom resource.
type WebApp = kube.CustomResource[WebAppSpec, kube.None]

// The Go type alone describes the resource.
func ExampleCustomResource() {
	r, err := kube.ResourceOf[WebApp]()
	fmt.Println(r, r.Kind, err)
	// Output: webapps.example.com WebApp <nil>
}

// Config wraps a type of another module, which has no Definition method.
type Config struct{ corev1.ConfigMap }

// Definition implements [kube.Defined].
func (Config) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Config"}
}

// TypeOf checks a type before any request. Its error says what the type lacks.
func ExampleTypeOf() {
	for _, err := range []error{
		second(kube.TypeOf[Config]()),
		second(kube.TypeOf[metav1.PartialObjectMetadata]()),
	} {
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// v1.PartialObjectMetadata stands for any kind: use kube.Metadata and name the resource
}

func second[T any](_ T, err error) error { return err }

// A Handler sees every request of a client as bytes.
func ExampleClient_With() {
	server := wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		fmt.Println(r.Verb, r.Ref(), string(r.Body))
		return &wire.Response{Code: 200, Body: r.Body}, nil
	})
	readOnly := func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			if r.Verb.IsWrite() && r.Namespace == "kube-system" {
				return nil, fmt.Errorf("%s %s: not in this namespace", r.Verb, r.Ref())
			}
			return next.Do(ctx, r)
		})
	}
	client := kube.NewClientFromHandler(server).With(readOnly)
	for _, namespace := range []string{"default", "kube-system"} {
		_, err := kube.Apply(context.Background(), client, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Data: map[string]string{"k": "v"},
		})
		fmt.Println(err)
	}
	// Output:
	// patch configmaps "default/c" {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},"data":{"k":"v"}}
	// <nil>
	// patch configmaps "kube-system/c": not in this namespace
}

// OwnedBy makes an object a child: the garbage collector deletes the child after its owner.
func ExampleOwnedBy() {
	app := &WebApp{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "1234"}}
	child := kube.OwnedBy(app, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	owner := child.OwnerReferences[0]
	fmt.Println(owner.APIVersion, owner.Kind, owner.Name, owner.UID)
	// Output: example.com/v1 WebApp shop 1234
}

// Modify changes what others write too. It reads the object and calls the function. If somebody has changed the object
// meanwhile, it does so once more.
func ExampleAPI_Modify() {
	ctx, c := context.Background(), fakeserver.New().Client() // an API server in memory
	apps := kube.Namespaced[WebApp](c, "default")
	if _, err := apps.Create(ctx, &WebApp{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: WebAppSpec{Replicas: 1}}); err != nil {
		log.Fatal(err)
	}
	attempts := 0
	app, err := apps.Modify(ctx, "shop", func(app *WebApp) error {
		if attempts++; attempts == 1 { // somebody else is quicker
			if _, err := apps.Modify(ctx, "shop", func(app *WebApp) error { app.Spec.Replicas = 5; return nil }); err != nil {
				return err
			}
		}
		app.Spec.Replicas++
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(app.Spec.Replicas, "replicas after", attempts, "attempts")
	// Output: 6 replicas after 2 attempts
}

// PatchDifference sends what a function of yours has changed in an object, and nothing else. What others have changed
// meanwhile stays.
func ExampleAPI_PatchDifference() {
	ctx, c := context.Background(), fakeserver.New().Client()
	apps := kube.Namespaced[WebApp](c, "default")
	before, err := apps.Create(ctx, &WebApp{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: WebAppSpec{Image: "shop:1", Replicas: 1}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := apps.Modify(ctx, "shop", func(app *WebApp) error { app.Spec.Replicas = 5; return nil }); err != nil {
		log.Fatal(err)
	}
	after := kube.DeepCopy(before)
	after.Spec.Image = "shop:2"
	app, err := apps.PatchDifference(ctx, before, after)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(app.Spec.Image, "with", app.Spec.Replicas, "replicas")
	// Output: shop:2 with 5 replicas
}

// A command line program finds its cluster as kubectl does, and lists what kubectl would list.
func Example() {
	ctx := context.Background()
	config, namespace, err := kube.ConfigSource{}.Load()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kube.NewClient(config)
	if err != nil {
		log.Fatal(err)
	}
	for deployment, err := range kube.Namespaced[appsv1.Deployment](client, namespace).Each(ctx, kube.Label("app", "shop")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(deployment.Name, deployment.Status.ReadyReplicas)
	}
}
