package kubelet

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/yare-go/yare/controlplane/internal/kubelet/lifecycle"
	"github.com/yare-go/yare/controlplane/internal/workers"
)

// podWorkers is how many Pods are written at the same time.
const podWorkers = 16

// pods looks after the Pods of all nodes.
type pods struct {
	client    kubernetes.Interface
	informer  cache.SharedIndexInformer
	workers   workers.Workers
	addresses map[string]*addresses // by node name
	nodes     map[string]lifecycle.Node

	mu      sync.Mutex
	records map[string]*podRecord // by namespace/name
}

// podRecord holds what the node knows of one Pod besides the object in the API. Only the worker
// that syncs the Pod uses its fields. A Pod is with one worker at a time.
type podRecord struct {
	uid     types.UID
	node    string
	history lifecycle.History
	// writtenVersion is the resource version after the last status write. A Pod with an older
	// version was read before that write and is ignored.
	writtenVersion string
	// reported holds the problems for which an Event was written.
	reported map[lifecycle.Problem]bool
	// isRemoved is true once the deletion was sent. Finalizers can keep the Pod.
	isRemoved bool
}

func newPods(client kubernetes.Interface, nodeNames []string) *pods {
	p := &pods{
		client:    client,
		addresses: map[string]*addresses{},
		nodes:     map[string]lifecycle.Node{},
		records:   map[string]*podRecord{},
	}
	p.workers = workers.Workers{
		Count: podWorkers, Sync: p.syncPod,
		Report: func(_ context.Context, key string, err error) {
			slog.Warn("writing a Pod failed; trying again", "pod", key, "error", err)
		},
	}
	p.workers.Init(20 * time.Millisecond)
	for i, name := range nodeNames {
		p.addresses[name] = newAddresses(i)
		p.nodes[name] = lifecycle.Node{IP: nodeIP(i)}
	}
	bound := fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	p.informer = cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = bound
				return client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = bound
				return client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, options)
			},
		}, client), &corev1.Pod{}, 0, cache.Indexers{})
	return p
}

// run looks after Pods until the context ends.
func (p *pods) run(ctx context.Context) {
	if err := p.workers.Watch(p.informer, nil); err != nil {
		slog.Error("watching Pods failed", "error", err)
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { p.informer.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), p.informer.HasSynced) {
		p.markUsedAddresses()
		p.workers.Run(ctx)
	}
}

// markUsedAddresses marks the addresses of the Pods that existed before as used, so that no second Pod gets one of
// them.
func (p *pods) markUsedAddresses() {
	for _, object := range p.informer.GetStore().List() {
		pod := object.(*corev1.Pod)
		if a := p.addresses[pod.Spec.NodeName]; a != nil && pod.Status.PodIP != "" {
			a.markUsed(pod.Status.PodIP)
		}
	}
}

// syncPod writes the status that one Pod should have by now, or removes the Pod. It returns after which time it wants
// the Pod again.
func (p *pods) syncPod(ctx context.Context, key string) (requeueAfter time.Duration, err error) {
	object, found, err := p.informer.GetStore().GetByKey(key)
	if err != nil {
		return 0, err
	}
	if !found {
		p.forget(key)
		return 0, nil
	}
	pod := object.(*corev1.Pod)
	node, ours := p.nodes[pod.Spec.NodeName]
	if !ours {
		return 0, nil
	}
	r := p.findOrMakeRecord(key, pod)
	if r.isRemoved || isOlder(pod.ResourceVersion, r.writtenVersion) {
		return 0, nil // the watch will deliver our own write
	}
	settings, problems := lifecycle.ParseSettings(pod)
	reportProblems(ctx, p.client, pod, r, problems)

	decision := lifecycle.Next(pod, settings, &r.history, node, time.Now())
	if decision.Status != nil {
		updated := pod.DeepCopy()
		updated.Status = *decision.Status
		written, err := p.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		if errors.IsNotFound(err) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		r.writtenVersion = written.ResourceVersion
	}
	if decision.Remove {
		return 0, p.remove(ctx, pod, r)
	}
	return decision.RecheckAfter, nil
}

// remove deletes a Pod whose containers have stopped.
func (p *pods) remove(ctx context.Context, pod *corev1.Pod, r *podRecord) error {
	err := p.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) { // a conflict: it is another Pod by now
		return err
	}
	r.isRemoved = true
	return nil
}

// findOrMakeRecord returns the record of a Pod. It makes a record for a new Pod, also if the Pod has replaced another
// Pod of the same name.
func (p *pods) findOrMakeRecord(key string, pod *corev1.Pod) *podRecord {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[key]
	if r != nil && r.uid == pod.UID {
		return r
	}
	if r != nil {
		p.addresses[r.node].release(r.history.IP)
	}
	r = &podRecord{uid: pod.UID, node: pod.Spec.NodeName}
	r.history.IP = pod.Status.PodIP
	if r.history.IP == "" {
		r.history.IP = p.addresses[r.node].allocate()
	}
	p.records[key] = r
	return r
}

// forget drops the record of a Pod that is gone, and releases its address.
func (p *pods) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[key]; r != nil {
		p.addresses[r.node].release(r.history.IP)
		delete(p.records, key)
	}
}

// isOlder reports whether one version of an object is certainly older than another.
func isOlder(version, than string) bool {
	if than == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
