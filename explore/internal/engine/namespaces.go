package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

const (
	// maxRemoval is how long the removal of a namespace may take. A busy machine needs minutes.
	maxRemoval = 3 * time.Minute
	// maxEmptying is how long a namespace may take to become empty, before it is removed instead.
	maxEmptying = 30 * time.Second
)

// namespaces are the namespaces of the runs. A namespace is emptied after its run, and reused: the
// removal of a namespace costs the control plane more requests than most runs. The methods are safe
// for concurrent use.
type namespaces struct {
	// cluster has a client that reports no warnings: all kinds are deleted, also deprecated ones.
	cluster cluster
	// emptyExternalSystem removes what the run of a namespace has left in the external system. It is nil if there is none.
	emptyExternalSystem func(ctx context.Context, namespace string) error
	// label is the value of ExplorationLabel.
	label string
	// emptying counts the goroutines that empty namespaces.
	emptying sync.WaitGroup

	mu sync.Mutex
	// free holds the names of the namespaces that are empty.
	free []string
	errs []error
}

// acquire returns the name of a namespace for a run. isNew is true if the namespace does not exist yet.
func (n *namespaces) acquire() (name string, isNew bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.free) - 1; last >= 0 {
		name, n.free = n.free[last], n.free[:last]
		return name, false
	}
	return "explore-" + strings.ToLower(rand.Text()[:8]), true
}

// ExplorationLabel is the key of the label of the namespaces of an exploration. Its value is Settings.NamespaceLabel.
const ExplorationLabel = "explore.yare.dev/exploration"

// create makes a namespace with its ResourceQuota.
func (n *namespaces) create(ctx context.Context, name string) error {
	_, err := kube.Everywhere[corev1.Namespace](n.cluster.client).Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ExplorationLabel: n.label}}})
	if err != nil {
		return err
	}
	_, err = kube.Namespaced[corev1.ResourceQuota](n.cluster.client, name).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: history.QuotaName},
		Spec:       corev1.ResourceQuotaSpec{Hard: quotaLimits()},
	})
	return err
}

// quotaLimits returns how many objects a run may have at a time. The limits keep a program that makes
// objects without end from filling the control plane.
func quotaLimits() corev1.ResourceList {
	few, many := resource.MustParse("100"), resource.MustParse("500")
	return corev1.ResourceList{
		corev1.ResourcePods: few, corev1.ResourcePersistentVolumeClaims: few, corev1.ResourceServices: few,
		corev1.ResourceSecrets: many, corev1.ResourceConfigMaps: many, "count/jobs.batch": few,
	}
}

// release empties a namespace after its run, in the background, and closes the recording of the run. It removes
// a namespace that is not reusable or does not become empty.
func (n *namespaces) release(name string, recording *history.Recording, isReusable bool) {
	n.emptying.Go(func() {
		defer recording.Close()
		// The context of the exploration may have ended.
		ctx, cancel := context.WithTimeoutCause(context.Background(), maxEmptying,
			errors.New("the namespace does not become empty"))
		defer cancel()
		if n.emptyExternalSystem != nil {
			if err := n.emptyExternalSystem(ctx, name); err != nil {
				n.addError(fmt.Errorf("empty the external system of the namespace %s: %w", name, err))
				isReusable = false
			}
		}
		if isReusable && n.empty(ctx, name, recording) == nil {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.free = append(n.free, name)
			return
		}
		if err := n.remove(name, recording); err != nil {
			n.addError(err)
		}
	})
}

// addError adds an error of the background.
func (n *namespaces) addError(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errs = append(n.errs, err)
}

// empty deletes the objects in a namespace, until the recording shows that none is left. The recording shows no quotas.
// A run that could not be made may have left a full one.
func (n *namespaces) empty(ctx context.Context, name string, recording *history.Recording) error {
	quotas := kube.Namespaced[corev1.ResourceQuota](n.cluster.client, name)
	if err := kube.IgnoreNotFound(quotas.Delete(ctx, faults.FullQuotaName)); err != nil {
		return err
	}
	for {
		if err := recording.CatchUp(ctx); err != nil {
			return err
		}
		left := leftIn(recording.State())
		if len(left) == 0 {
			return kube.Namespaced[corev1.Event](n.cluster.client, name).DeleteAll(ctx, []kube.Selector{kube.Everything()})
		}
		for _, v := range left {
			if err := n.deleteVersion(ctx, v); err != nil {
				return err
			}
		}
		if err := clock.SleepReal(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// leftIn returns the objects that a run has left, besides Events and what each namespace has. Objects without an
// owner come first, because a controller replaces a deleted object as long as its owner exists.
func leftIn(state history.State) []history.Version {
	var withoutOwner, withOwner []history.Version
	for _, v := range state.Objects() {
		switch {
		case v.Resource == history.ExternalSystemResource:
		case v.Resource == "events" || v.Resource == "events.events.k8s.io":
		case v.Resource == "serviceaccounts" && v.Name == "default":
		case v.Resource == "configmaps" && v.Name == "kube-root-ca.crt":
		case len(v.Content().GetOwnerReferences()) > 0:
			withOwner = append(withOwner, v)
		default:
			withoutOwner = append(withoutOwner, v)
		}
	}
	return append(withoutOwner, withOwner...)
}

// deleteVersion deletes an object at once, without its finalizers.
func (n *namespaces) deleteVersion(ctx context.Context, v history.Version) error {
	r, err := n.cluster.resource(v.Resource)
	if err != nil {
		return nil // its definition is gone, and with it the object
	}
	api := kube.Dynamic(n.cluster.client, r, v.Namespace)
	if len(v.Content().GetFinalizers()) > 0 {
		_, err := api.Patch(ctx, v.Name, kube.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}}))
		if kube.IgnoreNotFound(err) != nil {
			return err
		}
	}
	err = api.Delete(ctx, v.Name, kube.GracePeriod(0), kube.Propagation(metav1.DeletePropagationBackground))
	return kube.IgnoreNotFound(err)
}

// remove deletes the namespace of a run, and removes the finalizers that keep objects in it: the program
// that would have removed them has ended.
func (n *namespaces) remove(name string, recording *history.Recording) error {
	// The context of the exploration may have ended.
	ctx, cancel := context.WithTimeout(context.Background(), maxRemoval)
	defer cancel()
	if err := kube.IgnoreNotFound(kube.Everywhere[corev1.Namespace](n.cluster.client).Delete(ctx, name)); err != nil {
		return err
	}
	for _, v := range recording.State().Objects() {
		if len(v.Content().GetFinalizers()) == 0 {
			continue
		}
		if err := n.deleteVersion(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// close removes the namespaces that are left, and returns what has failed in the background.
func (n *namespaces) close() error {
	n.emptying.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), maxRemoval)
	defer cancel()
	errs := n.errs
	for _, name := range n.free {
		errs = append(errs, kube.IgnoreNotFound(kube.Everywhere[corev1.Namespace](n.cluster.client).Delete(ctx, name)))
	}
	return errors.Join(errs...)
}
