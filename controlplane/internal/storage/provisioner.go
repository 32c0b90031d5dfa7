package storage

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	informerscorev1 "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/yare-go/yare/controlplane/internal/workers"
)

const (
	// requestAnnotation is how the stock controller of volumes asks a provisioner for the volume of
	// a claim, when the volume is due by the binding mode of the class.
	requestAnnotation = "volume.kubernetes.io/storage-provisioner"
	// originAnnotation names the provisioner of a volume. The stock controller leaves the deletion
	// of the volume to that provisioner.
	originAnnotation = "pv.kubernetes.io/provisioned-by"

	workerCount = 4
)

// Provisioner makes, resizes and deletes simulated volumes. The stock controllers do the rest:
// they bind the volumes to their claims, and protect both while they are in use.
type Provisioner struct {
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	claims    informerscorev1.PersistentVolumeClaimInformer
	volumes   informerscorev1.PersistentVolumeInformer
	// workers sync claims, whose keys are namespace/name, and volumes, whose keys are names.
	workers workers.Workers
}

// NewProvisioner returns a provisioner that does nothing until it runs.
func NewProvisioner(client kubernetes.Interface) *Provisioner {
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &Provisioner{
		client:    client,
		informers: factory,
		claims:    factory.Core().V1().PersistentVolumeClaims(),
		volumes:   factory.Core().V1().PersistentVolumes(),
	}
	p.workers = workers.Workers{
		Count: workerCount, Sync: p.syncObject,
		Report: func(_ context.Context, key string, err error) {
			slog.Warn("serving storage failed; trying again", "object", key, "error", err)
		},
	}
	p.workers.Init(20 * time.Millisecond)
	return p
}

// Run serves claims and volumes until the context ends.
func (p *Provisioner) Run(ctx context.Context) {
	for _, informer := range []cache.SharedIndexInformer{p.claims.Informer(), p.volumes.Informer()} {
		if err := p.workers.Watch(informer, nil); err != nil {
			slog.Error("watching volumes failed", "error", err)
			return
		}
	}
	p.informers.Start(ctx.Done())
	defer p.informers.Shutdown()
	p.informers.WaitForCacheSync(ctx.Done())
	p.workers.Run(ctx)
}

// syncObject makes or resizes the volume of a claim, or deletes a volume that no claim uses any more.
func (p *Provisioner) syncObject(ctx context.Context, key string) (requeueAfter time.Duration, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	if namespace == "" {
		volume, err := p.volumes.Lister().Get(name)
		if err != nil {
			return 0, ignoreNotFound(err)
		}
		return 0, p.deleteReleased(ctx, volume)
	}
	claim, err := p.claims.Lister().PersistentVolumeClaims(namespace).Get(name)
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	return 0, p.syncClaim(ctx, claim)
}

// syncClaim makes the volume of a claim that asks for one, or gives a bound claim the size that it asks for.
func (p *Provisioner) syncClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	switch {
	case claim.DeletionTimestamp != nil:
		return nil
	case claim.Spec.VolumeName == "" && claim.Annotations[requestAnnotation] == Name:
		return p.provision(ctx, claim)
	case claim.Status.Phase == corev1.ClaimBound:
		return p.resize(ctx, claim)
	}
	return nil
}

// deleteReleased deletes a volume whose claim is gone, unless its class retains it.
func (p *Provisioner) deleteReleased(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[originAnnotation] != Name ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
		volume.DeletionTimestamp != nil {
		return nil
	}
	return ignoreNotFound(p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
	}))
}

// provision makes the volume of a claim. The name of the volume follows from the uid of the claim, so
// that a claim never has two volumes.
func (p *Provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	name := "pvc-" + string(claim.UID)
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{originAnnotation: Name}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			// A volume must have a source. No node ever looks at this one.
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/simulated/" + name},
			},
		},
	}, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// resize gives the volume of a claim, and then the status of the claim, the size that the claim asks
// for, if it is larger. The API server refuses smaller sizes, and classes that do not allow it.
func (p *Provisioner) resize(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if size := claim.Status.Capacity[corev1.ResourceStorage]; size.Cmp(wanted) >= 0 {
		return nil
	}
	volumes := p.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	if volume.Annotations[originAnnotation] != Name {
		return nil
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(wanted) < 0 {
		volume.Spec.Capacity[corev1.ResourceStorage] = wanted
		if _, err := volumes.Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	resized := claim.DeepCopy()
	if resized.Status.Capacity == nil {
		resized.Status.Capacity = corev1.ResourceList{}
	}
	resized.Status.Capacity[corev1.ResourceStorage] = wanted
	_, err = p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, resized, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

// ignoreNotFound returns err, unless the object does not exist.
func ignoreNotFound(err error) error {
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
