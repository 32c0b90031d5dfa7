package kube

import (
	stdjson "encoding/json"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/kube/wire"
)

// applied returns what an apply of obj sends.
func applied(t *testing.T, obj Object, subresource string) map[string]any {
	t.Helper()
	typ, err := TypeOfObject(obj)
	if err != nil {
		typ.Resource = wire.Resource{GroupVersionKind: obj.GetObjectKind().GroupVersionKind(), Plural: "things"}
	}
	var data []byte
	if subresource == "" {
		data, err = newPruner().applyBody(obj, typ.Resource, false)
	} else {
		data, err = newPruner().statusBody(obj, typ.Resource, obj.GetResourceVersion())
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(data))
}

func decoded(t *testing.T, data string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := stdjson.Unmarshal([]byte(data), &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return m
}

type node struct {
	Value    int32            `json:"value"`
	Props    map[string]node  `json:"props"`
	Items    *node            `json:"items"`
	AllOf    []node           `json:"allOf"`
	External *struct{}        `json:"external"`
	Inline   struct{ A *int } `json:"inline"`
}

type rich struct {
	Shared        `json:",inline"`
	*Pointed      `json:",inline"`
	Tree          node                 `json:"tree,omitempty"`
	Raw           runtime.RawExtension `json:"raw"`
	PRaw          *runtime.RawExtension
	Any           any                    `json:"any"`
	Quantity      resource.Quantity      `json:"quantity"`
	PQuantity     *resource.Quantity     `json:"pQuantity"`
	Port          intstr.IntOrString     `json:"port"`
	PPort         *intstr.IntOrString    `json:"pPort"`
	Time          metav1.Time            `json:"time"`
	Selector      metav1.LabelSelector   `json:"selector"`
	Optional      metav1.LabelSelector   `json:"optional,omitempty"`
	PSelector     *metav1.LabelSelector  `json:"pSelector"`
	Maps          map[string]*node       `json:"maps"`
	Structs       map[string]struct{}    `json:"structs"`
	List          []struct{ A []string } `json:"list"`
	Own           own                    `json:"own"`
	Number        int32                  `json:"number"`
	OptionalFlag  bool                   `json:"optionalFlag,omitempty"`
	Pointer       *bool                  `json:"pointer"`
	Hidden        string                 `json:"-"`
	Strings       []string               `json:"strings"`
	EmptyButThere []string               `json:"emptyButThere"`
}

type sparse struct {
	*SparsePointed `json:",inline"`
	Port           intstr.IntOrString            `json:"port,omitempty"`
	PPort          *intstr.IntOrString           `json:"pPort,omitempty"`
	Quantity       resource.Quantity             `json:"quantity,omitempty"`
	Duration       metav1.Duration               `json:"duration,omitempty"`
	Time           metav1.Time                   `json:"time,omitempty"`
	MicroTime      metav1.MicroTime              `json:"microTime"`
	Ports          []intstr.IntOrString          `json:"ports"`
	ByName         map[string]intstr.IntOrString `json:"byName"`
	Inner          map[string]sparseInner        `json:"inner"`
}

type sparseInner struct {
	Optional intstr.IntOrString `json:"optional,omitempty"`
	Required intstr.IntOrString `json:"required"`
}

// SparsePointed is embedded as a pointer.
type SparsePointed struct {
	FarPort intstr.IntOrString `json:"farPort,omitempty"`
}

func (sparse) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Sparse"}
}

// Shared is embedded.
type Shared struct {
	Common string   `json:"common"`
	Nil    []string `json:"nil"`
}

// Pointed is embedded as a pointer.
type Pointed struct {
	Far string `json:"far"`
}

type own struct{ text string }

func (o own) MarshalJSON() ([]byte, error) {
	return stdjson.Marshal(map[string]any{"text": nil, "empty": map[string]any{}, "was": o.text})
}

func (rich) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Rich"}
}

// Promise 10: an apply has exactly the fields that its author set.
func TestApplySendsWhatItsAuthorSaid(t *testing.T) {
	t.Parallel()
	zero, no := int32(0), false
	quantity, port := resource.MustParse("0"), intstr.FromInt32(0)
	meta := metav1.ObjectMeta{Name: "n", Namespace: "ns"}
	type object = CustomResource[rich, None]
	const richEmpty = `"common":"","raw":null,"quantity":"0","port":0,"number":0,"selector":{},"own":{"text":null,"empty":{},"was":""}`
	richly := func(members string) string {
		return `{"metadata":{"name":"n","namespace":"ns"},"spec":{` + strings.ReplaceAll(richEmpty, `"raw":null,`, "") + members + `}}`
	}

	for _, test := range []struct {
		name string
		obj  Object
		want string
	}{
		{"an untouched Deployment", &appsv1.Deployment{ObjectMeta: meta}, `{"metadata":{"name":"n","namespace":"ns"}}`},
		{"replicas: 0", &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &zero}},
			`{"metadata":{"name":"n","namespace":"ns"},"spec":{"replicas":0}}`},
		{"a Deployment with a container", &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "c", Image: "i"}},
					Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		}}, `{"metadata":{"name":"n","namespace":"ns"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{
			"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","emptyDir":{}}]}}}}`},
		{"limits", &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0")}},
		}}}}, `{"metadata":{"name":"n","namespace":"ns"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"0"}}}]}}`},
		{"an empty element of a list", &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}, {}},
		}}, `{"metadata":{"name":"n","namespace":"ns"},"spec":{"ingress":[{"from":[{"podSelector":{}}]},{}]}}`},
		{"metadata of an object that was read", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "7", Generation: 3, CreationTimestamp: metav1.Unix(1, 0),
			DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, DeletionGracePeriodSeconds: new(int64), SelfLink: "/x",
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, Labels: map[string]string{}, Finalizers: []string{"a/b"},
		}, Data: map[string]string{"k": ""}}, `{"metadata":{"name":"n","uid":"u","resourceVersion":"7","finalizers":["a/b"]},"data":{"k":""}}`},
		{"Bug: metadata of an unstructured object that was read", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"name": "n", "managedFields": []any{}, "creationTimestamp": nil,
				"annotations": map[string]any{}},
			"spec": map[string]any{"null": nil, "map": map[string]any{}, "list": []any{nil}},
		}}, `{"metadata":{"name":"n","annotations":{}},"spec":{"null":null,"map":{},"list":[null]}}`},

		{"Bug: a target port that nobody named", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			`{"metadata":{"name":"n","namespace":"ns"},"spec":{"ports":[{"port":80}]}}`},
		{"a target port", &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}},
			`{"metadata":{"name":"n","namespace":"ns"},"spec":{"ports":[{"port":80,"targetPort":"http"}]}}`},
		{"ports behind pointers", &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &port}},
			`{"metadata":{"name":"n","namespace":"ns"},"spec":{"minAvailable":0}}`},
		{"Bug: a divisor that nobody named", &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{
			{Name: "unsaid", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
			{Name: "zero", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: quantity}}},
		}}}}}, `{"metadata":{"name":"n","namespace":"ns"},"spec":{"containers":[{"name":"c","env":[
			{"name":"unsaid","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
			{"name":"zero","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}}]}]}}`},
		{"zero values of a custom resource that are optional", &CustomResource[sparse, None]{ObjectMeta: meta, Spec: sparse{
			Ports: []intstr.IntOrString{{}}, ByName: map[string]intstr.IntOrString{"a": {}}, Inner: map[string]sparseInner{"b": {}}, PPort: &port,
		}}, `{"metadata":{"name":"n","namespace":"ns"},"spec":{"ports":[0],"byName":{"a":0},"inner":{"b":{"required":0}},"pPort":0}}`},

		{"a custom resource, untouched", &object{ObjectMeta: meta}, richly("")},
		{"Bug: an empty spec, which the schema requires", &planet{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, `{"metadata":{"name":"n"},"spec":{}}`},
		{"its status goes elsewhere", &gadget{ObjectMeta: meta, Spec: gadgetSpec{Size: 0}}, `{"metadata":{"name":"n","namespace":"ns"},"spec":{"size":0}}`},
		{"pointers to zero", &object{ObjectMeta: meta, Spec: rich{
			Pointed: &Pointed{}, PRaw: &runtime.RawExtension{Raw: []byte(`{"a": null}`)}, PQuantity: &quantity, PPort: &port,
			PSelector: &metav1.LabelSelector{}, Pointer: &no, EmptyButThere: []string{},
		}}, richly(`,"far":"","PRaw":{"a":null},"pQuantity":"0","pPort":0,"pSelector":{},"pointer":false,"emptyButThere":[]`)},
		{"Bug: a raw extension that is {}", &object{ObjectMeta: meta, Spec: rich{Raw: runtime.RawExtension{Raw: []byte(`{}`)}}}, richly(`,"raw":{}`)},
		{"any is verbatim", &object{ObjectMeta: meta, Spec: rich{Any: map[string]any{"null": nil, "map": map[string]any{}}}},
			richly(`,"any":{"null":null,"map":{}}`)},
		{"map values are meant", &object{ObjectMeta: meta, Spec: rich{
			Maps: map[string]*node{"nil": nil, "zero": {}}, Structs: map[string]struct{}{"a": {}}, List: []struct{ A []string }{{}},
		}}, richly(`,"maps":{"nil":null,"zero":{"value":0,"inline":{}}},"structs":{"a":{}},"list":[{}]`)},
		{"a type that contains itself", &object{ObjectMeta: meta, Spec: rich{Tree: node{
			Props: map[string]node{"p": {Items: &node{AllOf: []node{{External: &struct{}{}}}}}},
		}}}, richly(`,"tree":{"value":0,"inline":{},"props":{"p":{"value":0,"inline":{},"items":{"value":0,"inline":{},"allOf":[{"value":0,"inline":{},"external":{}}]}}}}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := applied(t, test.obj, "")
			if got["kind"] == "" || got["apiVersion"] == "" {
				t.Errorf("the kind is missing in %v", got)
			}
			delete(got, "kind")
			delete(got, "apiVersion")
			if diff := cmp.Diff(decoded(t, test.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApplyStatusSendsTheStatusAlone(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "n", Namespace: "ns", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}
	const identity = `"metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7"}`
	type pointed struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Status            *gadgetStatus `json:"status"`
	}
	for _, test := range []struct {
		name string
		obj  Object
		want string
	}{
		{"full", &gadget{ObjectMeta: meta, Status: gadgetStatus{Ready: true}}, `{"apiVersion":"example.com/v1","kind":"Gadget",` + identity + `,"status":{"ready":true}}`},
		{"left out", &gadget{ObjectMeta: meta}, `{"apiVersion":"example.com/v1","kind":"Gadget",` + identity + `}`},
		{"Bug: empty, which the server took for null", &appsv1.Deployment{ObjectMeta: meta}, `{"apiVersion":"apps/v1","kind":"Deployment",` + identity + `}`},
		{"nil", &pointed{TypeMeta: metav1.TypeMeta{APIVersion: "g/v1", Kind: "K"}, ObjectMeta: meta},
			`{"apiVersion":"g/v1","kind":"K",` + identity + `}`},
		{"no version", &gadget{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"n","uid":"u"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(decoded(t, test.want), applied(t, test.obj, "status")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An apply leaves only empty parts out of a built-in object: the body decodes to the same
// object.
func TestApplyOfEveryBuiltinTypeLosesNothing(t *testing.T) {
	t.Parallel()
	for _, file := range fixtures(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var meta metav1.TypeMeta
		if err := Unmarshal(data, &meta); err != nil {
			t.Fatal(err)
		}
		made, err := scheme.Scheme.New(meta.GroupVersionKind())
		if err != nil {
			continue // see TestJSONOfEveryBuiltinType
		}
		obj, ok := made.(Object)
		if !ok {
			continue // has no metadata: cannot be applied
		}
		if _, err := TypeOfObject(obj); err != nil {
			continue
		}
		for name, from := range map[string]string{"full": string(data), "empty": `{}`} {
			if err := Unmarshal([]byte(from), obj); err != nil {
				t.Fatal(err)
			}
			checkLossless(t, name+" "+file, obj)
		}
	}
}

func checkLossless(t *testing.T, name string, obj Object) {
	t.Helper()
	typ, err := TypeOfObject(obj)
	if err != nil {
		t.Fatal(err)
	}
	body, err := newPruner().applyBody(obj, typ.Resource, true)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	back := reflect.New(typ.Go).Interface().(Object)
	if err := Unmarshal(body, back); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, o := range []Object{obj, back} {
		o.GetObjectKind().SetGroupVersionKind(typ.Resource.GroupVersionKind)
		o.SetManagedFields(nil)
		o.SetCreationTimestamp(metav1.Time{})
		o.SetGeneration(0)
		o.SetSelfLink("")
		o.SetDeletionTimestamp(nil)
		o.SetDeletionGracePeriodSeconds(nil)
	}
	// Compared as JSON without null: a nil and an empty map are the same to Kubernetes.
	want, got := decoded(t, string(stdMarshal(t, obj))), decoded(t, string(stdMarshal(t, back)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: apply loses\n%s", name, diff)
	}
}

func FuzzApplyLosesNothing(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a"},"spec":{"replicas":0,"template":{"spec":{"containers":[{"image":"i","resources":{},"args":[]}],"volumes":[{"emptyDir":{}}]}}}}`))
	f.Add([]byte(`{"spec":{"selector":{},"strategy":{"rollingUpdate":{}}},"status":{"conditions":[{"lastUpdateTime":null}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d appsv1.Deployment
		if Unmarshal(data, &d) != nil {
			return
		}
		checkLossless(t, string(data), &d)
	})
}

// A pruner is shared by all requests of a client.
func TestPrunerIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p := newPruner()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, obj := range []Object{&appsv1.Deployment{}, &corev1.Pod{}, &gadget{}, &CustomResource[rich, None]{}} {
				typ, err := TypeOfObject(obj)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := p.applyBody(obj, typ.Resource, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// Bug: an embedded pointer to itself, which encoding/json takes, went on for ever.
func TestApplyOfTypeThatEmbedsItself(t *testing.T) {
	t.Parallel()
	type object = CustomResource[looped, None]
	got := applied(t, &object{Spec: looped{A: "x"}}, "")
	if diff := cmp.Diff(map[string]any{"a": "x"}, got["spec"]); diff != "" {
		t.Error(diff)
	}
}

type looped struct {
	*looped
	A string `json:"a"`
}

func (looped) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Loop"}
}
