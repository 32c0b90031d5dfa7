package controllermanager

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/component-base/metrics/prometheus/controllers"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// newContext makes the context that all controllers share. app.CreateControllerContext does the same, but first waits
// until the API server is healthy. The API server is healthy only a second after it answers requests, and
// app.CreateControllerContext asks only once a second.
func newContext(ctx context.Context, c *config.CompletedConfig) (app.ControllerContext, error) {
	builder := clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig}
	client, err := kubernetes.NewForConfig(c.Kubeconfig)
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("make a client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(c.Kubeconfig)
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("make a metadata client: %w", err)
	}
	resync := app.ResyncPeriod(c)
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync(),
		informers.WithTransform(dropManagedFields), informers.WithCustomResyncConfig(workloadResync()))
	untyped := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(),
		metadatainformer.WithTransform(dropManagedFields))

	cc := app.ControllerContext{
		ClientBuilder:                   builder,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed, untyped),
		ComponentConfig:                 c.ComponentConfig,
		// The garbage collector resets the mapper whenever the kinds that exist change, so there is
		// no need to reset it by the clock.
		RESTMapper:               restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		InformersStarted:         make(chan struct{}),
		ResyncPeriod:             resync,
		ControllerManagerMetrics: controllers.NewControllerManagerMetrics("kube-controller-manager"),
	}
	controllers.Register()

	ignored := map[schema.GroupResource]struct{}{}
	for _, r := range c.ComponentConfig.GarbageCollectorController.GCIgnoredResources {
		ignored[schema.GroupResource{Group: r.Group, Resource: r.Resource}] = struct{}{}
	}
	cc.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, cc.RESTMapper, ignored,
		cc.ObjectOrMetadataInformerFactory, cc.InformersStarted)
	return cc, nil
}

// workloadPeriod is how often the controllers of workloads look at all their objects again.
//
// It bounds how long an object waits whose sync failed. These controllers retry with
// workqueue.DefaultTypedControllerRateLimiter (k8s.io/client-go/util/workqueue): for each object after 5 ms,
// doubled with each failure up to 1,000 s, but for all objects of a controller together ten times a second
// after the first 100. A failure above that rate puts off all later retries, because each one reserves its
// turn. A test with many quick edits causes 2,000 conflicts within a minute or two. After them each retry
// waits for more than a minute, even the first retry of an object. Such an object is left alone unless it
// changes, and the error is logged at level 2 only. A resync is not a retry: it does not wait. A sync that
// finds nothing to do sends no request.
const workloadPeriod = 5 * time.Second

// workloadResync returns the resync periods of the kinds whose controllers retry in this way.
func workloadResync() map[metav1.Object]time.Duration {
	return map[metav1.Object]time.Duration{
		&appsv1.Deployment{}:  workloadPeriod,
		&appsv1.ReplicaSet{}:  workloadPeriod,
		&appsv1.StatefulSet{}: workloadPeriod,
		&appsv1.DaemonSet{}:   workloadPeriod,
	}
}

// dropManagedFields drops the managed fields of an object. No controller reads them, and they make up a third of an
// object.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
