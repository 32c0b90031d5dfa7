package readiness_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube/readiness"
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
		state  readiness.State
		reason string
	}{
		{deployment + "{}", readiness.Progressing, "Progressing"},
		{deployment + "{observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", readiness.Progressing, "Progressing"},
		{deployment + "{observedGeneration: 2, replicas: 4, updatedReplicas: 3, availableReplicas: 3}", readiness.Progressing, "Progressing"},
		{deployment + "{observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}", readiness.Ready, "Available"},
		{deployment + "{observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", readiness.Failed, "ProgressDeadlineExceeded"},
		{deployment + "{observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}", readiness.Progressing, "Progressing"},
		{deployment + "{observedGeneration: 2, conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}", readiness.Progressing, "FailedCreate"},
		{set + "{observedGeneration: 1, replicas: 2, updatedReplicas: 1, availableReplicas: 2, currentRevision: a, updateRevision: b}", readiness.Ready, "Available"},
		{set + "{observedGeneration: 1, replicas: 2, availableReplicas: 2, currentRevision: a, updateRevision: b}", readiness.Progressing, "Progressing"},
		{set + "{observedGeneration: 1, replicas: 2, availableReplicas: 1, currentRevision: a, updateRevision: a}", readiness.Progressing, "Progressing"},
		{daemons + "{}", readiness.Progressing, "Progressing"},
		{daemons + "{observedGeneration: 1, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}", readiness.Ready, "Available"},
		{daemons + "{observedGeneration: 1}", readiness.Ready, "Available"}, // no node
		{"apiVersion: apps/v1\nkind: ReplicaSet\nstatus: {observedGeneration: 1, replicas: 1, availableReplicas: 1}", readiness.Ready, "Available"},
		{job + "{active: 1, startTime: '2026-01-01T00:00:00Z'}", readiness.Progressing, "Running"},
		{job + "{conditions: [{type: Complete, status: 'True'}]}", readiness.Ready, "Complete"},
		{job + "{conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}", readiness.Failed, "BackoffLimitExceeded"},
		{"apiVersion: batch/v1\nkind: Job\nspec: {suspend: true}", readiness.Progressing, "Suspended"},
		{"apiVersion: batch/v1\nkind: CronJob\nspec: {suspend: true}", readiness.Ready, "Exists"},
		{pod + "{phase: Running, conditions: [{type: Ready, status: 'True'}]}", readiness.Ready, "Ready"},
		{pod + "{phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady}]}", readiness.Progressing, "ContainersNotReady"},
		{pod + "{phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}", readiness.Failed, "CrashLoopBackOff"},
		{pod + "{phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ImagePullBackOff}}}]}", readiness.Progressing, "ImagePullBackOff"},
		{pod + "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}", readiness.Progressing, "Unschedulable"},
		{pod + "{phase: Succeeded}", readiness.Ready, "Succeeded"},
		{pod + "{phase: Failed, reason: Evicted}", readiness.Failed, "Evicted"},
		{"apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}\nstatus: {loadBalancer: {}}", readiness.Progressing, "NoAddress"},
		{"apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}", readiness.Ready, "Exists"},
		{"apiVersion: v1\nkind: Service", readiness.Ready, "Exists"},
		{claim + "{phase: Pending}", readiness.Progressing, "Pending"},
		{claim + "{phase: Bound}", readiness.Ready, "Bound"},
		{claim + "{phase: Lost}", readiness.Failed, "Lost"},
		{definition + "{conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}", readiness.Ready, "Established"},
		{definition + "{conditions: [{type: NamesAccepted, status: 'False', reason: ListKindConflict}]}", readiness.Failed, "ListKindConflict"},
		{definition + "{conditions: [{type: Established, status: 'False', reason: Installing}]}", readiness.Progressing, "Installing"},
		{"apiVersion: v1\nkind: Namespace\nstatus: {phase: Active}", readiness.Ready, "Active"},
		{"apiVersion: v1\nkind: ConfigMap", readiness.Ready, "Exists"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}", readiness.Progressing, "Terminating"},
		{foreign + "{}", readiness.Unknown, "NoCondition"},
		{foreign + "{conditions: [{type: Synced, status: 'True'}]}", readiness.Unknown, "NoCondition"},
		{foreign + "{observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}", readiness.Progressing, "NotObserved"},
		{foreign + "{observedGeneration: 2}", readiness.Ready, "Observed"},
		{foreign + "{conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}", readiness.Progressing, "NotObserved"},
		{foreign + "{conditions: [{type: Ready, status: 'True', observedGeneration: 2, reason: Done}]}", readiness.Ready, "Done"},
		{foreign + "{conditions: [{type: Available, status: Unknown}]}", readiness.Progressing, "NotAvailable"},
		{foreign + "{conditions: [{type: Reconciling, status: 'True'}, {type: Stalled, status: 'True', reason: NoKey}]}", readiness.Failed, "NoKey"},
		{foreign + "{conditions: [{type: Reconciling, status: 'True', reason: Rolling}, {type: Ready, status: 'True'}]}", readiness.Progressing, "Rolling"},
		{foreign + "{ready: true}", readiness.Ready, "Ready"},
		{foreign + "{ready: 2 of 3}", readiness.Unknown, "NoCondition"},
		{foreign + "{conditions: all}", readiness.Unknown, "UnreadableStatus"},
	} {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(test.object), &u.Object); err != nil {
			t.Fatalf("%s: %v", test.object, err)
		}
		if got := readiness.Of(&u); got.State != test.state || got.Reason != test.reason || got.Message == "" {
			t.Errorf("%s: %+v, want %s, %s", test.object, got, test.state, test.reason)
		}
	}
	typed := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32)}, Status: appsv1.DeploymentStatus{ObservedGeneration: 1}}
	if got := readiness.Of(typed); got.State != readiness.Ready || got.Message != "0 of 0 pods are updated, 0 available" {
		t.Errorf("a typed object without replicas: %+v", got)
	}
	if got := readiness.Of(&corev1.Secret{}); got.State != readiness.Ready {
		t.Errorf("a typed Secret: %+v", got)
	}
	if got := readiness.Of(&metav1.PartialObjectMetadata{}); got.State != readiness.Unknown {
		t.Errorf("metadata alone: %+v", got)
	}
}
