package controllermanager

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

// discoveryPeriod is how often the garbage collector asks which kinds exist. The stock
// command asks every 30 s and has no flag for it; a test that makes a
// CustomResourceDefinition, an owner and its children should not have to wait 30 s for
// the children to go. It is one request a second, answered from memory.
const discoveryPeriod = time.Second

// collector runs the stock garbage collector with a shorter discovery period.
type collector struct {
	*garbagecollector.GarbageCollector
	discovery discovery.DiscoveryInterface
	workers   int
}

func newGarbageCollector(ctx context.Context, cc app.ControllerContext) (app.Controller, error) {
	const user = "generic-garbage-collector"
	client, err := cc.NewClient(user)
	if err != nil {
		return nil, err
	}
	discoveryClient, err := cc.ClientBuilder.DiscoveryClient(user)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	config, err := cc.NewClientConfig(user)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, client, metadataClient, cc.RESTMapper, cc.GraphBuilder)
	if err != nil {
		return nil, fmt.Errorf("make the garbage collector: %w", err)
	}
	return &collector{
		GarbageCollector: gc,
		discovery:        discoveryClient,
		workers:          int(cc.ComponentConfig.GarbageCollectorController.ConcurrentGCSyncs),
	}, nil
}

// Name implements app.Controller. The embedded controller has a method of that name too.
func (*collector) Name() string { return names.GarbageCollectorController }

// Run implements app.Controller: it runs the workers and, beside them, the discovery.
func (c *collector) Run(ctx context.Context) {
	const initialSync = 30 * time.Second
	var group sync.WaitGroup
	group.Go(func() { c.GarbageCollector.Run(ctx, c.workers, initialSync) })
	group.Go(func() { c.Sync(ctx, c.discovery, discoveryPeriod) })
	group.Wait()
}
