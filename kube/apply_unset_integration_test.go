package kube_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// clusterSpec and clusterStatus stand for the types of another project, such as Cluster API. Other controllers set the
// endpoint and the status.
type (
	clusterEndpoint struct {
		Host string `json:"host"`
		Port int32  `json:"port"`
	}
	clusterTopology struct {
		Class     string            `json:"class"`
		Variables map[string]string `json:"variables,omitempty"`
	}
	clusterSpec struct {
		Paused   bool            `json:"paused,omitempty"`
		Endpoint clusterEndpoint `json:"endpoint,omitempty"`
		Topology clusterTopology `json:"topology,omitempty"`
	}
	clusterStatus struct {
		Phase string `json:"phase"`
	}
)

// farm is a kind of another project with a status subresource, and mill is one without it.
type (
	farmSpec clusterSpec
	millSpec clusterSpec
	farm     = kube.CustomResource[farmSpec, clusterStatus]
	mill     = kube.CustomResource[millSpec, clusterStatus]
)

func (farmSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "Farm", Foreign: true}
}

func (millSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "Mill", Foreign: true}
}

// keeper is a kind that owns farms.
type (
	keeperSpec struct{}
	keeper     = kube.CustomResource[keeperSpec, kube.None]
)

func (keeperSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "Keeper"}
}

// defineForeign defines a kind as another project publishes it. spec is more of the schema of the spec.
func defineForeign(t *testing.T, cluster *yaretest.Cluster, kind, subresources, spec string) {
	t.Helper()
	cluster.Kubectl(t, strings.NewReplacer("KIND", kind, "SINGULAR", strings.ToLower(kind), "SUBRESOURCES", subresources, "SPEC", spec).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: SINGULARs.unset.yare.dev}
spec:
  group: unset.yare.dev
  scope: Namespaced
  names: {kind: KIND, plural: SINGULARs, singular: SINGULAR, listKind: KINDList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: SUBRESOURCES
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            SPEC
            properties:
              paused: {type: boolean}
              endpoint: {type: object, required: [host, port], properties: {host: {type: string}, port: {type: integer}}}
              topology: {type: object, properties: {class: {type: string}, variables: {type: object, additionalProperties: {type: string}}}}
          status: {type: object, required: [phase], properties: {phase: {type: string}}}
`), "apply", "--server-side", "-f", "-")
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+strings.ToLower(kind)+"s.unset.yare.dev")
}

// Promise 10, by the bug: an apply replaced the endpoint and the status of other controllers by zeros.
func TestApplyLeavesWhatItsAuthorDidNotSetToOthers(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineForeign(t, cluster, "Mill", "{}", "")
	c, namespace, ctx := cluster.Client(t).WithFieldManager("author"), cluster.Namespace(t), t.Context()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "a"}
	must(kube.Apply(ctx, c, &mill{ObjectMeta: meta}))(t)
	mills := kube.Namespaced[mill](c.WithFieldManager("infrastructure"), namespace)
	must(mills.Patch(ctx, "a", kube.MergePatch(map[string]any{
		"spec": map[string]any{"endpoint": map[string]any{"host": "10.0.0.1", "port": 6443}}, "status": map[string]any{"phase": "Provisioned"},
	})))(t)
	live := must(kube.Apply(ctx, c, &mill{ObjectMeta: meta, Spec: millSpec{Paused: true}}))(t)
	if want := (millSpec{Paused: true, Endpoint: clusterEndpoint{"10.0.0.1", 6443}}); live.Spec.Endpoint != want.Endpoint || !live.Spec.Paused || live.Status.Phase != "Provisioned" {
		t.Errorf("the object is %+v %+v, want %+v and the phase Provisioned", live.Spec, live.Status, want)
	}
	// A status that was set is sent, because the kind has no status subresource.
	live = must(kube.Apply(ctx, c, &mill{ObjectMeta: meta, Spec: millSpec{Paused: true}, Status: clusterStatus{"Failed"}}))(t)
	if live.Status.Phase != "Failed" {
		t.Errorf("the status is %+v, want Failed", live.Status)
	}
	// {} is a value.
	live = must(kube.Apply(ctx, c, &mill{ObjectMeta: meta, Spec: millSpec{Topology: clusterTopology{Variables: map[string]string{}}}, Status: clusterStatus{"Failed"}}))(t)
	if fields := strings.Join(owned(t, live, "author", ""), " "); fields != ".spec.topology.class .status.phase" {
		t.Errorf("the owned fields are %s", fields)
	}
}

// Promise 8: a change of a status that no apply sends leads to no request. Bug: it led to an apply each time.
func TestChangeOfAForeignStatusLeadsToNoRequest(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineForeign(t, cluster, "Farm", "{status: {}}", "")
	yaretest.Define[keeper](t, cluster)
	namespace, proxy := cluster.Namespace(t), cluster.Proxy(t)
	var seen atomic.Value
	seen.Store("")
	yaretest.RunParts(t, proxy, controller.New(func(ctx context.Context, k *keeper, c *kube.Client) (controller.Action, error) {
		child := &farm{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Spec: farmSpec{Paused: true}, Status: clusterStatus{"mine"}}
		live, err := kube.Apply(ctx, c, kube.OwnedBy(k, child))
		if err == nil {
			seen.Store(live.Status.Phase)
		}
		return controller.Done(), err
	}, controller.Owns[farm]()))
	c := cluster.Client(t)
	must(kube.Create(t.Context(), c, &keeper{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}))(t)
	farms := kube.Namespaced[farm](c.WithFieldManager("its-controller"), namespace)
	yaretest.Eventually(t, func() error { _, err := farms.Get(t.Context(), "a"); return err })
	setPhase := func(phase string) {
		t.Helper()
		must(farms.Status().Patch(t.Context(), "a", kube.MergePatch(map[string]any{"status": map[string]any{"phase": phase}})))(t)
		yaretest.Eventually(t, func() error {
			if got := seen.Load(); got != phase {
				return fmt.Errorf("the last reconcile has seen the phase %q, want %q", got, phase)
			}
			return nil
		})
	}
	setPhase("first")
	before := len(proxy.Writes())
	for i := range 3 {
		setPhase(fmt.Sprint("phase", i))
	}
	if writes := proxy.Writes()[before:]; len(writes) > 0 {
		t.Errorf("the changes of the status led to %v", writes)
	}
}

// The rows of the table in docs/guide/create-or-apply.md about types of others.
func TestApplyOfALabelAlone(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t).WithFieldManager("author"), cluster.Namespace(t), t.Context()
	labels := map[string]string{"team": "red"}
	meta := metav1.ObjectMeta{Name: "a", Namespace: namespace}
	classMeta := metav1.ObjectMeta{Name: namespace}
	must(kube.Create(ctx, c, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"}}}))(t)
	must(kube.Create(ctx, c, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		ServiceName: "a", Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}))(t)
	must(kube.Create(ctx, c, &schedulingv1.PriorityClass{ObjectMeta: classMeta, Value: 7}))(t)
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(ctx), &schedulingv1.PriorityClass{ObjectMeta: classMeta}) })

	one := int32(1)
	labelled, labelledClass := meta, classMeta
	labelled.Labels, labelledClass.Labels = labels, labels
	for name, test := range map[string]struct {
		obj  kube.Object
		want string // of the error
	}{
		"a label of a HorizontalPodAutoscaler":    {&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: labelled}, ""},
		"a label of a StatefulSet":                {&appsv1.StatefulSet{ObjectMeta: labelled}, ""},
		"the replicas of a StatefulSet":           {&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &one, ServiceName: "a"}}, ""},
		"replicas of a HorizontalPodAutoscaler":   {&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: &one}}, "spec.maxReplicas"},
		"a label of a PriorityClass":              {&schedulingv1.PriorityClass{ObjectMeta: labelledClass}, "value"},
		"a label of a PriorityClass, with value":  {&schedulingv1.PriorityClass{ObjectMeta: labelledClass, Value: 7}, ""},
		"a new Deployment with the replicas only": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}, Spec: appsv1.DeploymentSpec{Replicas: &one}}, "; spec.template was not sent, "},
	} {
		live, err := kube.Apply(ctx, c, test.obj)
		if (err == nil) != (test.want == "") || err != nil && (!kube.IsInvalid(err) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if strings.HasPrefix(name, "a label") && err == nil {
			fields := strings.Join(owned(t, live, "author", ""), " ")
			if want := ".metadata.labels.team"; !strings.HasPrefix(fields, want) || strings.Contains(fields, "spec") {
				t.Errorf("%s: it owns %s, want %s", name, fields, want)
			}
		}
	}
}

type (
	lastRun struct {
		Phase string `json:"phase" crd:"enum=Won|Lost"`
	}
	gameSpec struct {
		First lastRun `json:"first,omitempty"`
	}
	gameStatus struct {
		Seen bool    `json:"seen"`
		Last lastRun `json:"last,omitempty"`
		Best lastRun `json:"best" crd:"optional"`
	}
	game = kube.CustomResource[gameSpec, gameStatus]

	// strictGame has a part that its schema requires.
	strictGameSpec struct {
		Last lastRun `json:"last"`
	}
	strictGame = kube.CustomResource[strictGameSpec, kube.None]
)

func (gameSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "Game"}
}

func (strictGameSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "StrictGame"}
}

// Bug: a status was refused as long as an optional part of it was not set.
func TestOptionalPartOfAnOwnKindCanBeMissing(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[game](t, cluster)
	yaretest.Define[strictGame](t, cluster)
	c, ctx := cluster.Client(t), t.Context()
	meta := metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "a"}
	live := must(kube.Apply(ctx, c, &game{ObjectMeta: meta}))(t)
	live.Status.Seen = true
	if err := c.ApplyStatus(ctx, live); err != nil {
		t.Errorf("apply of a status without its optional part: %v", err)
	}
	_, err := kube.Apply(ctx, c, &strictGame{ObjectMeta: meta})
	if err == nil || !strings.Contains(err.Error(), "; spec.last was sent, because the schema requires it") || !strings.Contains(err.Error(), "omitzero") {
		t.Errorf("a required part that was not set: %v", err)
	}
}

// The error of a real server names the member of a foreign kind that was not sent. What it advises helps.
func TestServerMissesAnUnsetStruct(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineForeign(t, cluster, "Yard", "{}", "required: [topology]")
	c, ctx := cluster.Client(t), t.Context()
	meta := metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "a"}
	_, err := kube.Apply(ctx, c, &yard{ObjectMeta: meta, Spec: yardSpec{Paused: true}})
	if !kube.IsInvalid(err) || !strings.Contains(err.Error(), "; spec.topology was not sent") {
		t.Errorf("the error is %v", err)
	}
	must(kube.Apply(ctx, c, &yard{ObjectMeta: meta, Spec: yardSpec{Paused: true, Topology: clusterTopology{Variables: map[string]string{}}}}))(t)
}

type (
	yardSpec clusterSpec
	yard     = kube.CustomResource[yardSpec, kube.None]
)

func (yardSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "Yard", Foreign: true}
}

type (
	shedSpec struct {
		Paused bool   `json:"paused,omitempty"`
		Colour string `json:"colour,omitempty"`
	}
	shed = kube.CustomResource[shedSpec, kube.None]
)

func (shedSpec) Definition() kube.Definition {
	return kube.Definition{Group: "unset.yare.dev", Version: "v1", Kind: "Shed", Foreign: true}
}

// The definition in the cluster is older than the Go type. The error names the field that the server does not know. Without it the
// apply succeeds.
func TestApplyOfAFieldThatTheServerDoesNotKnow(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineForeign(t, cluster, "Shed", "{}", "")
	c, ctx := cluster.Client(t), t.Context()
	meta := metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "a"}
	_, err := kube.Apply(ctx, c, &shed{ObjectMeta: meta, Spec: shedSpec{Paused: true, Colour: "red"}})
	if err == nil || !strings.Contains(err.Error(), "; the API server knows no field spec.colour in sheds.unset.yare.dev: ") || kube.IsUnknown(err) {
		t.Errorf("an apply of a field that the server does not know: %v", err)
	}
	must(kube.Apply(ctx, c, &shed{ObjectMeta: meta, Spec: shedSpec{Paused: true}}))(t)
}
