package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
	"github.com/yare-go/yare/yaretest"
)

// A kind with two versions, of which the validator knows one.
type (
	oldDiskSpec struct {
		Replicas int32  `json:"replicas,omitempty"`
		Size     string `json:"size,omitempty"`
	}
	diskSpec struct {
		Replicas int32  `json:"replicas,omitempty"`
		Size     string `json:"size,omitempty"`
	}
	diskStatus struct {
		Replicas int32 `json:"replicas,omitempty"`
	}
	oldDisk = kube.CustomResource[oldDiskSpec, diskStatus]
	disk    = kube.CustomResource[diskSpec, diskStatus]
)

func (oldDiskSpec) Definition() kube.Definition {
	return kube.Definition{Group: "webhook.example.com", Version: "v1beta1", Kind: "Disk", Scale: &kube.ScalePaths{}}
}

func (diskSpec) Definition() kube.Definition {
	return kube.Definition{Group: "webhook.example.com", Version: "v1", Kind: "Disk", Scale: &kube.ScalePaths{}}
}

// Requests in another version of a kind reach the validator too, in its version.
func TestRequestsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	old, err := kube.TypeOf[oldDisk]()
	if err != nil {
		t.Fatal(err)
	}
	current, err := kube.TypeOf[disk]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, old, current)
	namespace := cluster.Namespace(t)
	validator := admission.Validator(func(_ context.Context, _, after *disk, _ *kube.Client) error {
		if after.APIVersion != "webhook.example.com/v1" {
			return errors.New("the version is " + after.APIVersion)
		}
		if after.Spec.Replicas > 5 {
			return field.Invalid(field.NewPath("spec", "replicas"), after.Spec.Replicas, "it is above 5")
		}
		return nil
	}, admission.ValidatorOptions{})
	disks := kube.Namespaced[oldDisk](cluster.Client(t), namespace)
	newDisk := func(name string, replicas int32) *oldDisk {
		return &oldDisk{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: oldDiskSpec{Replicas: replicas}}
	}
	_, isCalled := serveTo(t, disks.Client(), namespace, true, validator)
	yaretest.Eventually(t, func() error {
		if _, err := disks.Create(t.Context(), newDisk("probe", 0), kube.DryRun()); err != nil {
			return err
		}
		return isCalled()
	})
	if _, err := disks.Create(t.Context(), newDisk("a", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := disks.Create(t.Context(), newDisk("b", 7)); !kube.IsInvalid(err) {
		t.Errorf("a creation: %v", err)
	}
	if _, err := disks.Patch(t.Context(), "a", kube.MergePatch(json.RawMessage(`{"spec":{"replicas":8}}`))); !kube.IsInvalid(err) {
		t.Errorf("a change: %v", err)
	}
	if _, err := disks.SetScale(t.Context(), "a", 9); !kube.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas: Invalid value: 9") {
		t.Errorf("a scale: %v", err)
	}
	if _, err := disks.SetScale(t.Context(), "a", 4); err != nil {
		t.Errorf("a scale: %v", err)
	}
}
