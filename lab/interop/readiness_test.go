package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/readiness"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// judgement is what yare and kstatus say about one version of an object.
type judgement struct {
	yare   readiness.State
	theirs kstatus.Status
}

var (
	ready       = judgement{readiness.Ready, kstatus.CurrentStatus}
	progressing = judgement{readiness.Progressing, kstatus.InProgressStatus}
	failed      = judgement{readiness.Failed, kstatus.FailedStatus}
	terminating = judgement{readiness.Progressing, kstatus.TerminatingStatus}
	// stricter is where kstatus says "current", and the object does not do yet what its spec asks for.
	stricter = judgement{readiness.Progressing, kstatus.CurrentStatus}
	unknown  = judgement{readiness.Unknown, kstatus.CurrentStatus}
)

// Real objects pass through their stages, and each version is judged by yare and by kstatus. The table has each
// difference. docs/guide/status.md explains them.
func TestReadinessBesideKstatus(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Ship](t, cluster)
	pod := func(simulation, spec string) string {
		return fmt.Sprintf("metadata: {labels: {app: a}, annotations: {%s}}, spec: {containers: [{name: a, image: a}]%s}", simulation, spec)
	}
	workload := func(kind, simulation, more string) string {
		return fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nspec: {selector: {matchLabels: {app: a}}, template: {%s}%s}", kind, pod(simulation, ""), more)
	}
	const slowly, never = "simulate.yare.dev/ready-after: 500ms", "simulate.yare.dev/outcome: pending"
	const fails, loops = "simulate.yare.dev/outcome: fail", "simulate.yare.dev/outcome: crash-loop"
	once := ", restartPolicy: Never"
	job := func(simulation string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nspec: {backoffLimit: 0, template: {%s}}", pod(simulation, once))
	}
	onePod := func(simulation, spec string) string {
		return "{apiVersion: v1, kind: Pod, " + pod(simulation, spec) + "}"
	}
	for name, test := range map[string]struct {
		object string
		last   judgement
		others []judgement
	}{
		"Deployment":              {workload("Deployment", slowly, ""), ready, []judgement{progressing}},
		"Deployment that fails":   {workload("Deployment", never, ", progressDeadlineSeconds: 1"), failed, []judgement{progressing}},
		"Deployment of nothing":   {workload("Deployment", slowly, ", replicas: 0"), ready, []judgement{progressing}},
		"StatefulSet":             {workload("StatefulSet", slowly, ""), ready, []judgement{progressing}},
		"StatefulSet by deletion": {workload("StatefulSet", slowly, ", updateStrategy: {type: OnDelete}"), ready, []judgement{progressing, stricter}},
		"DaemonSet":               {workload("DaemonSet", slowly, ""), ready, []judgement{progressing}},
		"ReplicaSet":              {workload("ReplicaSet", slowly, ""), ready, []judgement{progressing}},
		"Job":                     {job(slowly), ready, []judgement{progressing, stricter}},
		"Job that fails":          {job(fails), failed, []judgement{progressing, stricter}},
		"Pod":                     {onePod(slowly, ""), ready, []judgement{progressing}},
		"Pod that completes":      {onePod("", once), ready, []judgement{progressing}},
		"Pod that fails": {
			onePod(fails, once), judgement{readiness.Failed, kstatus.CurrentStatus}, []judgement{progressing, ready},
		},
		"Pod that crashes": {onePod(loops, ""), failed, []judgement{progressing, ready}},
		"Service":          {"apiVersion: v1\nkind: Service\nspec: {ports: [{port: 1}]}", ready, nil},
		"load balancer":    {"apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer, ports: [{port: 1}]}", stricter, nil},
		"claim": {
			"apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
			progressing, nil,
		},
		"ConfigMap":       {"apiVersion: v1\nkind: ConfigMap", ready, nil},
		"custom resource": {"apiVersion: interop.yare.dev/v1\nkind: Ship\nspec: {masts: 1}", unknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			u.SetName("a")
			gvk := u.GroupVersionKind()
			objects := kube.Dynamic(cluster.Client(t), wire.Resource{GroupVersionKind: gvk, Plural: strings.ToLower(gvk.Kind) + "s"}, namespace)
			if _, err := objects.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			yaretest.Eventually(t, func() error {
				u, err := objects.Get(t.Context(), "a")
				if err != nil {
					return err
				}
				got := judge(t, u)
				if got == test.last {
					return nil
				}
				if !slices.Contains(test.others, got) {
					t.Errorf("yare says %s, and kstatus says %s, of %v", got.yare, got.theirs, u.Object["status"])
				}
				return fmt.Errorf("the object is %v", got)
			})
		})
	}
}

// judge returns what yare and kstatus say about an object.
func judge(t *testing.T, u *unstructured.Unstructured) judgement {
	t.Helper()
	theirs, err := kstatus.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	return judgement{readiness.Of(u).State, theirs.Status}
}

// Stages of custom objects on which yare and kstatus differ, or on which both must stay as they are.
func TestReadinessOfCustomObjectsBesideKstatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]judgement{
		"{observedGeneration: 1}":                                                                           progressing,
		"{observedGeneration: 2}":                                                                           ready,
		"{conditions: [{type: Ready, status: 'False'}]}":                                                    progressing,
		"{conditions: [{type: Ready, status: 'True'}]}":                                                     ready,
		"{conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}":                              stricter,
		"{conditions: [{type: Stalled, status: 'True'}, {type: Reconciling, status: 'True'}]}":              failed,
		"{conditions: [{type: Reconciling, status: 'True'}, {type: Stalled, status: 'True'}]}":              {readiness.Failed, kstatus.InProgressStatus},
		"{conditions: [{type: Stalled, status: 'True', observedGeneration: 1}]}":                            {readiness.Unknown, kstatus.FailedStatus},
		"{conditions: [{type: Reconciling, status: 'False'}, {type: Ready, status: 'True'}]}":               ready,
		"{observedGeneration: 2, conditions: [{type: Reconciling, status: 'True', observedGeneration: 2}]}": progressing,
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte("metadata: {generation: 2}\nstatus: "+status), &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
		// YAML has read floats.
		u.SetGeneration(2)
		if observed, ok := u.Object["status"].(map[string]any)["observedGeneration"].(float64); ok {
			u.Object["status"].(map[string]any)["observedGeneration"] = int64(observed)
		}
		if got := judge(t, u); got != want {
			t.Errorf("%s: yare says %s, and kstatus says %s, want %v", status, got.yare, got.theirs, want)
		}
	}
	deleted := &unstructured.Unstructured{Object: map[string]any{}}
	deleted.SetDeletionTimestamp(new(metav1.Now()))
	if got := judge(t, deleted); got != terminating {
		t.Errorf("a deleted object: %v", got)
	}
}
