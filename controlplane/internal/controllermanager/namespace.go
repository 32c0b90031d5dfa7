package controllermanager

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/yare-go/yare/controlplane/internal/workers"
)

const (
	// namespaceWorkers is how many namespaces are emptied at the same time.
	namespaceWorkers = 5
	// contentRecheckDelay is the wait before the next attempt to empty a namespace whose objects are being
	// deleted. The stock controller waits for half of the longest grace period.
	contentRecheckDelay = 250 * time.Millisecond
)

// namespaces empties and finalizes deleted namespaces with the stock deleter. It replaces the stock
// controller, which waits too long. The stock controller lets a deleted namespace rest for 5 s, because API
// servers may lag behind each other. Then it sleeps for as long as the Pods might take: 16 s for a Pod that
// is gone after half a second.
type namespaces struct {
	deleter deletion.NamespacedResourcesDeleterInterface
	lister  corev1listers.NamespaceLister
	synced  cache.InformerSynced
	workers workers.Workers
}

func newNamespaceController(ctx context.Context, cc app.ControllerContext) (app.Controller, error) {
	config, err := cc.NewClientConfig("namespace-controller")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a metadata client: %w", err)
	}
	informer := cc.InformerFactory.Core().V1().Namespaces()
	n := &namespaces{
		deleter: deletion.NewNamespacedResourcesDeleter(ctx, client.CoreV1().Namespaces(), metadataClient,
			client.CoreV1(), client.Discovery().ServerPreferredNamespacedResources, corev1.FinalizerKubernetes),
		lister: informer.Lister(),
		synced: informer.Informer().HasSynced,
	}
	n.workers = workers.Workers{
		Count: namespaceWorkers, Sync: n.deleteContent,
		Report: func(ctx context.Context, name string, err error) {
			utilruntime.HandleErrorWithContext(ctx, err, "Deleting the content of a namespace failed", "namespace", name)
		},
	}
	n.workers.Init(50 * time.Millisecond)
	if err := n.workers.Watch(informer.Informer(), isDeleted); err != nil {
		return nil, fmt.Errorf("watch namespaces: %w", err)
	}
	return n, nil
}

// Name implements app.Controller.
func (*namespaces) Name() string { return names.NamespaceController }

// Run implements app.Controller.
func (n *namespaces) Run(ctx context.Context) {
	if cache.WaitForCacheSync(ctx.Done(), n.synced) {
		n.workers.Run(ctx)
	}
}

// isDeleted reports whether an object is a namespace that is being deleted.
func isDeleted(object any) bool {
	namespace, ok := object.(*corev1.Namespace)
	return ok && namespace.DeletionTimestamp != nil
}

// deleteContent deletes the content of a namespace.
func (n *namespaces) deleteContent(ctx context.Context, name string) (requeueAfter time.Duration, err error) {
	if _, err := n.lister.Get(name); err != nil {
		return 0, nil // the namespace is gone
	}
	err = n.deleter.Delete(ctx, name)
	if _, ok := errors.AsType[*deletion.ResourcesRemainingError](err); ok {
		return contentRecheckDelay, nil
	}
	return 0, err
}
