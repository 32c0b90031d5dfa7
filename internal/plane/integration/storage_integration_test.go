package integration

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// newClaim returns a claim of the default class, or of the class that is named.
func newClaim(name, size string, class ...string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			},
		},
	}
	for _, c := range class {
		claim.Spec.StorageClassName = &c
	}
	return claim
}

// bound returns a check that fails unless a claim has a volume of this size.
func bound(size string) func(*corev1.PersistentVolumeClaim) error {
	return func(c *corev1.PersistentVolumeClaim) error {
		if got := c.Status.Capacity[corev1.ResourceStorage]; c.Status.Phase != corev1.ClaimBound || got.Cmp(resource.MustParse(size)) != 0 {
			return fmt.Errorf("claim %s has no volume of %s: %+v", c.Name, size, c.Status)
		}
		return nil
	}
}

// resize asks for another size of the volume of a claim.
func resize(t *testing.T, claims kube.API[corev1.PersistentVolumeClaim], name, size string) {
	t.Helper()
	patch(t, claims, name, map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": size}}}})
}

// The claims of a StatefulSet get volumes by default, can be resized, and keep their volumes as long as
// they exist.
func TestStorageOfStatefulSet(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	sets := kube.Namespaced[appsv1.StatefulSet](client, namespace)
	claims := kube.Namespaced[corev1.PersistentVolumeClaim](client, namespace)
	volumes := kube.Everywhere[corev1.PersistentVolume](client)

	labels, selector := selected("db")
	template := podTemplate(labels)
	template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	create(t, sets, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), ServiceName: "db", Selector: selector, Template: template,
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*newClaim("data", "1Gi")},
		},
	})
	yaretest.WaitFor(t, sets, "db", func(s *appsv1.StatefulSet) error {
		if s.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%d Pods are ready", s.Status.ReadyReplicas)
		}
		return nil
	})
	yaretest.WaitFor(t, claims, "data-db-1", bound("1Gi"))

	resize(t, claims, "data-db-0", "2Gi")
	claim := yaretest.WaitFor(t, claims, "data-db-0", bound("2Gi"))
	volume := get(t, volumes, claim.Spec.VolumeName)
	if got := volume.Spec.Capacity[corev1.ResourceStorage]; got.String() != "2Gi" {
		t.Errorf("the volume has %s", got.String())
	}

	remove(t, sets, "db")
	yaretest.WaitUntilGone(t, sets, "db")
	if got := get(t, claims, "data-db-0"); got.UID != claim.UID || got.DeletionTimestamp != nil {
		t.Errorf("the claim was deleted with its StatefulSet: %+v", got)
	}
	remove(t, claims, "data-db-0")
	yaretest.WaitUntilGone(t, claims, "data-db-0")
	yaretest.WaitUntilGone(t, volumes, volume.Name)
}

// Another class of the same provisioner has rules of its own.
func TestStorageClassThatRetainsVolumes(t *testing.T) {
	t.Parallel()
	cluster := shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	claims := kube.Namespaced[corev1.PersistentVolumeClaim](client, namespace)
	volumes := kube.Everywhere[corev1.PersistentVolume](client)
	class := create(t, kube.Everywhere[storagev1.StorageClass](client), &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: namespace},
		Provisioner:       "simulate.yare.dev",
		ReclaimPolicy:     new(corev1.PersistentVolumeReclaimRetain),
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	})
	create(t, claims, newClaim("data", "1Gi", class.Name))
	pod := newPod("first-consumer")
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	pods := kube.Namespaced[corev1.Pod](client, namespace)
	create(t, pods, pod)
	waitForPod(t, pods, pod.Name, runs(true))
	claim := yaretest.WaitFor(t, claims, "data", bound("1Gi"))

	_, err := claims.Patch(t.Context(), "data", kube.MergePatch(map[string]any{"spec": map[string]any{
		"resources": map[string]any{"requests": map[string]any{"storage": "2Gi"}}}}))
	if !kube.IsForbidden(err) {
		t.Errorf("a class without expansion: got %v, want a refusal", err)
	}

	remove(t, pods, pod.Name)
	remove(t, claims, "data")
	yaretest.WaitUntilGone(t, claims, "data")
	yaretest.WaitFor(t, volumes, claim.Spec.VolumeName, func(v *corev1.PersistentVolume) error {
		if v.Status.Phase != corev1.VolumeReleased || v.DeletionTimestamp != nil {
			return fmt.Errorf("the volume was not retained: %+v", v.Status)
		}
		return nil
	})
	remove(t, volumes, claim.Spec.VolumeName)
	remove(t, kube.Everywhere[storagev1.StorageClass](client), class.Name)
}
