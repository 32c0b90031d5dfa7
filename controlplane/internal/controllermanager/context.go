package controllermanager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
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

// newContext makes what all controllers share. app.CreateControllerContext does the same,
// but first waits until the API server is healthy, which it is only a second after it
// answers requests, and looks only once a second.
func newContext(ctx context.Context, c *config.CompletedConfig) (app.ControllerContext, error) {
	builder := clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig}
	client, err := kubernetes.NewForConfig(c.Kubeconfig)
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("making a client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(c.Kubeconfig)
	if err != nil {
		return app.ControllerContext{}, fmt.Errorf("making a metadata client: %w", err)
	}
	resync := app.ResyncPeriod(c)
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(trim))
	untyped := metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, resync(), metadatainformer.WithTransform(trim))

	cc := app.ControllerContext{
		ClientBuilder:                   builder,
		InformerFactory:                 typed,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(typed, untyped),
		ComponentConfig:                 c.ComponentConfig,
		// The garbage collector resets it whenever the kinds that exist change, so there is
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

// trim drops what no controller reads and what makes up a third of an object.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
