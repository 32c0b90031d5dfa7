// Package storage simulates storage: it gives PersistentVolumeClaims volumes that hold nothing.
package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// Name is the name of the provisioner. Any StorageClass can name it.
	Name = "simulate.yare.dev"
	// DefaultClass is the name of the default StorageClass.
	DefaultClass = "standard"
)

// CreateDefaultClass creates the default StorageClass, unless it exists. Its volumes can be resized,
// and are bound at once.
func CreateDefaultClass(ctx context.Context, client kubernetes.Interface) error {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        DefaultClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          Name,
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(true),
	}
	_, err := client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !errors.IsAlreadyExists(err) {
		return fmt.Errorf("create the StorageClass %s: %w", DefaultClass, err)
	}
	return nil
}
