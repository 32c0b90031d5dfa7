package kube_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube"
)

// Each row is a stage of an object. The laboratory compares the rules with kstatus on objects of a real server.
func TestReadiness(t *testing.T) {
	t.Parallel()
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\nspec: {replicas: 3}\nstatus: "
	const set = "apiVersion: apps/v1\nkind: StatefulSet\nspec: {replicas: 2, updateStrategy: {rollingUpdate: {partition: 1}}}\nstatus: "
	const daemons = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 1}\nstatus: "
	const job = "apiVersion: batch/v1\nkind: Job\nstatus: "
	const pod = "apiVersion: v1\nkind: Pod\nstatus: "
	const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nstatus: "
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nstatus: "
	const foreign = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {generation: 2}\nstatus: "
	for _, test := range []struct {
		object string
		state  kube.ReadinessState
		reason string
	}{
		{deployment + "{}", kube.StateProgressing, "Progressing"},
		{deployment + "{observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", kube.StateProgressing, "Progressing"},
		{deployment + "{observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 3}", kube.StateProgressing, "Progressing"},
		{deployment + "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", kube.StateReady, "Available"},
		{deployment + "{observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", kube.StateFailed, "ProgressDeadlineExceeded"},
		{deployment + "{observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", kube.StateProgressing, "Progressing"},
		{deployment + "{observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}", kube.StateProgressing, "FailedCreate"},
		{set + "{observedGeneration: 1, replicas: 2, updatedReplicas: 1, availableReplicas: 2, currentRevision: a, updateRevision: b}", kube.StateReady, "Available"},
		{set + "{observedGeneration: 1, replicas: 2, availableReplicas: 2, currentRevision: a, updateRevision: b}", kube.StateProgressing, "Progressing"},
		{set + "{observedGeneration: 1, replicas: 2, availableReplicas: 1, currentRevision: a, updateRevision: a}", kube.StateProgressing, "Progressing"},
		{daemons + "{}", kube.StateProgressing, "Progressing"},
		{daemons + "{observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}", kube.StateReady, "Available"},
		{daemons + "{observedGeneration: 1}", kube.StateReady, "Available"}, // no node
		{"apiVersion: apps/v1\nkind: ReplicaSet\nstatus: {observedGeneration: 1, replicas: 1, availableReplicas: 1}", kube.StateReady, "Available"},
		{job + "{active: 1, startTime: '2026-01-01T00:00:00Z'}", kube.StateProgressing, "Running"},
		{job + "{conditions: [{type: Complete, status: 'True'}]}", kube.StateReady, "Complete"},
		{job + "{conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}", kube.StateFailed, "BackoffLimitExceeded"},
		{"apiVersion: batch/v1\nkind: Job\nspec: {suspend: true}", kube.StateProgressing, "Suspended"},
		{"apiVersion: batch/v1\nkind: CronJob\nspec: {suspend: true}", kube.StateReady, "Exists"},
		{pod + "{phase: Running, conditions: [{type: Ready, status: 'True'}]}", kube.StateReady, "Ready"},
		{pod + "{phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady}]}", kube.StateProgressing, "ContainersNotReady"},
		{pod + "{phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}", kube.StateFailed, "CrashLoopBackOff"},
		{pod + "{phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff}}}]}", kube.StateProgressing, "ImagePullBackOff"},
		{pod + "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}", kube.StateProgressing, "Unschedulable"},
		{pod + "{phase: Succeeded}", kube.StateReady, "Succeeded"},
		{pod + "{phase: Failed, reason: Evicted}", kube.StateFailed, "Evicted"},
		{"apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}\nstatus: {loadBalancer: {}}", kube.StateProgressing, "NoAddress"},
		{"apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", kube.StateReady, "Exists"},
		{"apiVersion: v1\nkind: Service", kube.StateReady, "Exists"},
		{claim + "{phase: Pending}", kube.StateProgressing, "Pending"},
		{claim + "{phase: Bound}", kube.StateReady, "Bound"},
		{claim + "{phase: Lost}", kube.StateFailed, "Lost"},
		{definition + "{conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}", kube.StateReady, "Established"},
		{definition + "{conditions: [{type: NamesAccepted, status: 'False', reason: ListKindConflict}]}", kube.StateFailed, "ListKindConflict"},
		{definition + "{conditions: [{type: Established, status: 'False', reason: Installing}]}", kube.StateProgressing, "Installing"},
		{"apiVersion: v1\nkind: Namespace\nstatus: {phase: Active}", kube.StateReady, "Active"},
		{"apiVersion: v1\nkind: ConfigMap", kube.StateReady, "Exists"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", kube.StateProgressing, "Terminating"},
		{foreign + "{}", kube.StateUnknown, "NoCondition"},
		{foreign + "{conditions: [{type: Synced, status: 'True'}]}", kube.StateUnknown, "NoCondition"},
		{foreign + "{observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}", kube.StateProgressing, "NotObserved"},
		{foreign + "{observedGeneration: 2}", kube.StateReady, "Observed"},
		{foreign + "{conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}", kube.StateProgressing, "NotObserved"},
		{foreign + "{conditions: [{type: Ready, status: 'True', observedGeneration: 2, reason: Done}]}", kube.StateReady, "Done"},
		{foreign + "{conditions: [{type: Available, status: Unknown}]}", kube.StateProgressing, "NotAvailable"},
		{foreign + "{conditions: [{type: Reconciling, status: 'True'}, {type: Stalled, status: 'True', reason: NoKey}]}", kube.StateFailed, "NoKey"},
		{foreign + "{conditions: [{type: Reconciling, status: 'True', reason: Rolling}, {type: Ready, status: 'True'}]}", kube.StateProgressing, "Rolling"},
		{foreign + "{ready: true}", kube.StateReady, "Ready"},
		{foreign + "{ready: 2 of 3}", kube.StateUnknown, "NoCondition"},
		{foreign + "{conditions: all}", kube.StateUnknown, "UnreadableStatus"},
	} {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(test.object), &u.Object); err != nil {
			t.Fatalf("%s: %v", test.object, err)
		}
		if got := kube.ReadinessOf(&u); got.State != test.state || got.Reason != test.reason || got.Message == "" {
			t.Errorf("%s: %+v, want %s, %s", test.object, got, test.state, test.reason)
		}
	}
	typed := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32)}, Status: appsv1.DeploymentStatus{ObservedGeneration: 1}}
	if got := kube.ReadinessOf(typed); got.State != kube.StateReady || got.Message != "0 of 0 pods are updated, 0 available" {
		t.Errorf("a typed object without replicas: %+v", got)
	}
	if got := kube.ReadinessOf(&corev1.Secret{}); got.State != kube.StateReady {
		t.Errorf("a typed Secret: %+v", got)
	}
	if got := kube.ReadinessOf(&metav1.PartialObjectMetadata{}); got.State != kube.StateUnknown {
		t.Errorf("metadata alone: %+v", got)
	}
}
