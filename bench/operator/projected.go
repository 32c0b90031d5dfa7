package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/bench/internal/workload"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// shopSize is the metadata of a Shop, and how many replicas the Shop has and wants.
type shopSize struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		AvailableReplicas int32 `json:"availableReplicas"`
	} `json:"status"`
}

// Projection returns the kind.
func (shopSize) Projection() (wire.Resource, error) { return kube.ResourceOf[workload.Shop]() }

// podPhase is the metadata of a Pod, and its phase.
type podPhase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// Projection returns the kind.
func (podPhase) Projection() (wire.Resource, error) { return kube.ResourceOf[corev1.Pod]() }
