package kube_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Selectors narrow lists, watches and DeleteAll. All of them must hold. Parsed ones come from users, such as from a flag.
func ExampleSelector() {
	ctx, client := context.Background(), fakeserver.New().Client()
	for name, labels := range map[string]map[string]string{
		"a": {"app": "web", "tier": "front"}, "b": {"app": "web", "tier": "back"}, "c": {"app": "db"},
	} {
		if _, err := kube.Create(ctx, client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}}); err != nil {
			fmt.Println(err)
		}
	}
	for _, selectors := range [][]kube.Selector{
		{kube.Label("app", "web"), kube.LabelIn("tier", "front", "middle")},
		{kube.LabelExists("tier"), kube.Field("metadata.name", "b")},
		{kube.ParseLabels("app in (db), tier notin (front)"), kube.ParseFields("metadata.namespace=default")},
	} {
		pods, err := kube.List[corev1.Pod](ctx, client, "default", selectors...)
		for _, pod := range pods {
			fmt.Print(pod.Name, " ")
		}
		fmt.Println(err)
	}
	// Output:
	// a <nil>
	// b <nil>
	// c <nil>
}

// A tool for any kind: discovery finds the resource, Dynamic reads whole objects, and Metadata reads only what all
// objects have, which costs the server and the program much less.
func ExampleDynamic() {
	labelsOf := func(ctx context.Context, client *kube.Client, gvk schema.GroupVersionKind, namespace string) (map[string]int, error) {
		resources, err := wire.Discover(ctx, client, gvk.GroupVersion())
		if err != nil {
			return nil, err
		}
		count := make(map[string]int)
		for _, r := range resources {
			if r.Kind != gvk.Kind {
				continue
			}
			for object, err := range kube.Metadata(client, r, namespace).Each(ctx) {
				if err != nil {
					return nil, err
				}
				for key := range object.Labels {
					count[key]++
				}
			}
			first, err := kube.Dynamic(client, r, namespace).Get(ctx, "first")
			if kube.IgnoreNotFound(err) != nil {
				return nil, err
			}
			fmt.Println(first.Object["spec"])
		}
		return count, nil
	}
	_ = labelsOf
}

// A client that is derived from another one shares its connections. Namespaces narrow what "all namespaces" means. Live
// reads from the server where a cache could answer.
func ExampleClient_InNamespaces() {
	client := kube.NewClientFromHandler(fakeserver.New()).WithFieldManager("shop")
	narrow := client.InNamespaces("shop", "shop-staging")
	fmt.Println(narrow.Namespaces(), narrow.FieldManager(), len(narrow.AllNamespaces().Namespaces()))
	pods := kube.Everywhere[corev1.Pod](narrow.Live())
	streams, err := pods.Streams(kube.Label("app", "web"))
	fmt.Println(len(streams), streams[0], err)
	// A name of a cluster is for programs with a handler for several clusters. Other clients refuse it.
	_, err = pods.For(client.InCluster("west"), "shop").Get(context.Background(), "web")
	fmt.Println(err != nil, pods.Client() == client, pods.Resource())
	// Output:
	// [shop shop-staging] shop 0
	// 2 pods in namespace "shop" with "app=web" <nil>
	// true false pods
}

// Each reason of a failure has its own remedy. In a reconcile, return other errors: they are retried with a growing
// interval.
func ExampleHasReason() {
	remedy := func(err error) string {
		switch {
		case err == nil, kube.IsAlreadyExists(err):
			return "go on"
		case kube.IsNoResource(err):
			return "install the CustomResourceDefinition"
		case kube.IsNotFound(err):
			return "create the object"
		case kube.IsUIDConflict(err):
			return "another object has the name now: read it"
		case kube.IsConflict(err):
			return "read again, and repeat"
		case kube.IsForbidden(err), kube.HasReason(err, metav1.StatusReasonUnauthorized):
			return "ask the administrator"
		case kube.IsNamespaceTerminating(err):
			return "give up: the namespace goes"
		case kube.IsUnknown(err):
			return "read whether the write was carried out"
		case kube.IsUnreachable(err):
			return "wait"
		}
		if e, ok := kube.AsError(err); ok { // the whole answer
			return fmt.Sprintf("%s %s: %d after %s", e.Verb, e.Ref, e.Status().Code, e.RetryDelay())
		}
		return "this is no answer of a server"
	}
	refused := &wire.Error{Verb: wire.VerbGet, Code: 503, Answer: metav1.Status{Code: 503}, RetryAfter: time.Second}
	fmt.Println(remedy(errors.New("oops")))
	fmt.Println(remedy(refused))
	// Output:
	// this is no answer of a server
	// get  "": 503 after 1s
}

// A single watch request ends after some minutes, and misses what happens until the next one begins. watch.Events goes on
// where Watch ends, so it is the call for nearly all programs.
func ExampleAPI_Watch() {
	next := func(ctx context.Context, pods kube.API[corev1.Pod], resourceVersion string) (event kube.WatchEvent[corev1.Pod], err error) {
		for event, err = range pods.Watch(ctx, resourceVersion) {
			break
		}
		return event, err
	}
	_ = next
}

// A webhook or a queue delivers objects as JSON. Decode reads them as answers of the server are read. APIOf is the handle
// for a Type that is known only at run time, for libraries on top of yare.
func ExampleAPI_Decode() {
	kind, err := kube.TypeOfKind(&metav1.PartialObjectMetadata{}, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments",
	})
	if err != nil {
		fmt.Println(err)
	}
	api := kube.APIOf[metav1.PartialObjectMetadata](fakeserver.New().Client(), kind, "default")
	o, err := api.Decode([]byte(`{"metadata":{"name":"web","uid":"7","resourceVersion":"3"}}`))
	fmt.Println(o.Name, o.Kind, err)
	_, err = api.Decode([]byte(`{"metadata":{"name":7}}`))
	unreadable, ok := errors.AsType[*wire.DecodeError](err)
	fmt.Println(ok, unreadable.Ref.Resource)
	// Named is an object that has only its identity, and Object has the metadata of any T.
	gone := api.Named("default", "web", "7", "3")
	fmt.Println(api.Object(gone).GetUID(), kind.HasStatus())
	streams, err := kind.Streams(fakeserver.New().Client())
	fmt.Println(streams, err)
	// Output:
	// web Deployment <nil>
	// true deployments.apps
	// 7 false
	// [deployments.apps] <nil>
}
