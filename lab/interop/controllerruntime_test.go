package interop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/clientgo"
	"github.com/yare-go/yare/yaretest"
)

type ShipSpec struct {
	Masts int32             `json:"masts"`
	Cargo map[string]string `json:"cargo,omitempty"`
}

type ShipStatus struct {
	Afloat bool `json:"afloat,omitempty"`
}

func (ShipSpec) Definition() kube.Definition {
	return kube.Definition{Group: "interop.yare.dev", Version: "v1", Kind: "Ship"}
}

// Ship is an alias, and Boat a type of its own. They are the same resource.
type (
	Ship = kube.CustomResource[ShipSpec, ShipStatus]
	Boat kube.CustomResource[ShipSpec, ShipStatus]
)

func (b *Boat) DeepCopyObject() runtime.Object { return kube.DeepCopy(b) }

func TestAliasWithControllerRuntime(t *testing.T) {
	t.Parallel()
	testWithControllerRuntime(t, "alias", func(meta metav1.ObjectMeta, spec ShipSpec) *Ship {
		return &Ship{ObjectMeta: meta, Spec: spec}
	}, func(s *Ship) (*ShipSpec, *ShipStatus) { return &s.Spec, &s.Status })
}

func TestOwnTypeWithControllerRuntime(t *testing.T) {
	t.Parallel()
	testWithControllerRuntime(t, "own", func(meta metav1.ObjectMeta, spec ShipSpec) *Boat {
		return &Boat{ObjectMeta: meta, Spec: spec}
	}, func(b *Boat) (*ShipSpec, *ShipStatus) { return &b.Spec, &b.Status })
}

// testWithControllerRuntime uses a type with the client and the cache of controller-runtime.
func testWithControllerRuntime[T any, P interface {
	kube.DefinedObjectOf[T]
	client.Object
}](t *testing.T, name string, build func(metav1.ObjectMeta, ShipSpec) P, parts func(P) (*ShipSpec, *ShipStatus)) {
	cluster := yaretest.Shared(t)
	kind, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, kind)
	namespace, ctx := cluster.Namespace(t), t.Context()
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: kind.Resource.Group, Version: kind.Resource.Version}
	scheme.AddKnownTypeWithName(version.WithKind("Ship"), P(new(T)))
	scheme.AddKnownTypeWithName(version.WithKind("ShipList"), &kube.CustomResourceList[T]{})
	metav1.AddToGroupVersion(scheme, version)
	config := clientgo.ToREST(cluster.Config())
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}

	caches, err := cache.New(config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	must(err)
	cacheContext, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- caches.Start(cacheContext) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the cache ended with: %v", err)
		}
	})
	must(caches.IndexField(ctx, P(new(T)), "cargo", func(o client.Object) []string {
		spec, _ := parts(o.(P))
		return []string{spec.Cargo["hold"]}
	}))

	watching, err := c.Watch(ctx, &kube.CustomResourceList[T]{}, client.InNamespace(namespace))
	must(err)
	defer watching.Stop()
	must(c.Create(ctx, build(metav1.ObjectMeta{Namespace: namespace, Name: name}, ShipSpec{Masts: 3, Cargo: map[string]string{"hold": "tea"}})))
	select {
	case event := <-watching.ResultChan():
		if o, ok := event.Object.(P); !ok || event.Type != watch.Added || o.GetName() != name {
			t.Errorf("the watch shows %+v", event)
		}
	case <-time.After(time.Minute):
		t.Fatal("the watch shows nothing")
	}

	// What is read from the cache can be changed: the cache copies it.
	live := P(new(T))
	yaretest.Eventually(t, func() error { return caches.Get(ctx, key, live) })
	spec, status := parts(live)
	before := live.DeepCopyObject().(P)
	spec.Cargo["hold"] = "rum"
	again := P(new(T))
	must(caches.Get(ctx, key, again))
	if diff := cmp.Diff((*T)(before), (*T)(again)); diff != "" {
		t.Errorf("a change of what was read from the cache shows in the cache: %s", diff)
	}
	must(c.Patch(ctx, live, client.MergeFrom(before)))
	status.Afloat = true
	must(c.Status().Update(ctx, live))

	// yare sees what controller-runtime wrote.
	own, err := kube.Namespaced[T, P](cluster.Client(t), namespace).Get(ctx, name)
	must(err)
	if spec, status := parts(own); spec.Cargo["hold"] != "rum" || !status.Afloat || spec.Masts != 3 {
		t.Errorf("yare reads %+v", own)
	}
	yaretest.Eventually(t, func() error {
		list := &kube.CustomResourceList[T]{}
		if err := caches.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"cargo": "rum"}); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return errors.New("the index does not show the change")
		}
		return nil
	})
	must(c.Delete(ctx, live))
}
