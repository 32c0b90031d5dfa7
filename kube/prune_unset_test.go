package kube

import (
	stdjson "encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/yare-go/yare/kube/wire"
)

// endpoint stands for a struct of another project, whose fields its controller sets.
type endpoint struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
}

// verdict has a method IsZero that does not agree with its fields.
type verdict struct {
	Text string `json:"text"`
}

func (v verdict) IsZero() bool { return v.Text == "none" }

// lazy fills in a field when it is encoded, as messages of protocol buffers do.
type lazy struct {
	Text  string
	cache *string
}

func (l *lazy) MarshalJSON() ([]byte, error) {
	l.cache = &l.Text
	return stdjson.Marshal(map[string]string{"text": *l.cache})
}

type farmParts struct {
	Inner endpoint `json:"inner,omitempty"`
}

type farmSpec struct {
	farmParts
	Endpoint  endpoint             `json:"endpoint,omitempty"`
	Untagged  endpoint             `json:"untagged"`
	Pointer   *endpoint            `json:"pointer,omitempty"`
	Selector  metav1.LabelSelector `json:"selector,omitempty"`
	Quantity  resource.Quantity    `json:"quantity,omitzero"`
	PQuantity *resource.Quantity   `json:"pQuantity,omitzero"`
	Verdict   verdict              `json:"verdict,omitzero"`
	Own       own                  `json:"own"`
	Lazy      lazy                 `json:"lazy"`
	List      []farmParts          `json:"list,omitempty"`
	ByName    map[string]farmParts `json:"byName,omitempty"`
	ByNumber  map[int]farmParts    `json:"byNumber,omitempty"`
	Any       any                  `json:"any,omitempty"`
	Array     *[1]farmParts        `json:"array,omitempty"`
}

func (farmSpec) Definition() Definition {
	return Definition{Group: "farms.example.com", Version: "v1", Kind: "Farm", Foreign: true}
}

type farmStatus struct {
	Phase string `json:"phase"`
}

// ownFarm is a kind of the program itself, with crd tags that change what its schema requires.
type ownFarm struct {
	Required   endpoint `json:"required"`
	Optional   endpoint `json:"optional,omitempty"`
	ByTag      endpoint `json:"byTag" crd:"rule='a, optional''s b',optional"`
	RequiredBy endpoint `json:"requiredBy,omitempty" crd:"required"`
	Defaulted  endpoint `json:"defaulted" crd:"default={}"`
	ByType     byType   `json:"byType"`
	ByPath     struct {
		Inner endpoint `json:"inner"`
		Other endpoint `json:"other"`
	} `json:"byPath"`
	Items []struct {
		Inner endpoint `json:"inner"`
	} `json:"items"`
	Opaque    autoscalingv2.HorizontalPodAutoscalerSpec `json:"opaque" crd:"type=object"`
	Described autoscalingv2.HorizontalPodAutoscalerSpec `json:"described"`
}

// byType has a default for all of its values.
type byType struct {
	Host string `json:"host"`
}

func (byType) CRDTag() string { return "default={}" }

func (ownFarm) Definition() Definition {
	return Definition{Group: "example.com", Version: "v1", Kind: "Farm", Tags: map[string]string{
		".spec.byPath.inner": "optional", ".spec.items[*].inner": "optional",
	}}
}

// Bug: an apply sent structs that nobody had set, as {"host":"","port":0}, and took them from the controller that owns them.
func TestApplySendsNoUnsetStruct(t *testing.T) {
	t.Parallel()
	zero := resource.MustParse("0")
	meta := metav1.ObjectMeta{Name: "n", Namespace: "ns"}
	type (
		farm = CustomResource[farmSpec, farmStatus]
		home = CustomResource[ownFarm, farmStatus]
	)
	const unset = `{"host":"","port":0}`
	const required = `"required":` + unset + `,"requiredBy":` + unset + `,"byPath":{"other":` + unset + `},` +
		`"opaque":{"maxReplicas":0},"described":{"maxReplicas":0,"scaleTargetRef":{"kind":"","name":""}}`
	for _, test := range []struct {
		name string
		obj  Object
		want string // without the metadata
	}{
		{"nothing", &farm{ObjectMeta: meta}, `{}`},
		{"a part of a struct", &farm{ObjectMeta: meta, Spec: farmSpec{Endpoint: endpoint{Host: "h"}}}, `{"spec":{"endpoint":{"host":"h","port":0}}}`},
		{"a part of an embedded struct", &farm{ObjectMeta: meta, Spec: farmSpec{farmParts: farmParts{endpoint{Port: 1}}}},
			`{"spec":{"inner":{"host":"","port":1}}}`},
		{"a pointer", &farm{ObjectMeta: meta, Spec: farmSpec{Pointer: &endpoint{}}}, `{"spec":{"pointer":` + unset + `}}`},
		{"a selector of all", &farm{ObjectMeta: meta, Spec: farmSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{}}}},
			`{"spec":{"selector":{}}}`},
		{"quantities of 0", &farm{ObjectMeta: meta, Spec: farmSpec{Quantity: zero, PQuantity: &zero}}, `{"spec":{"quantity":"0","pQuantity":"0"}}`},
		{"what a method calls zero", &farm{ObjectMeta: meta, Spec: farmSpec{Verdict: verdict{"none"}}}, `{"spec":{"verdict":{"text":"none"}}}`},
		{"a field that is not exported", &farm{ObjectMeta: meta, Spec: farmSpec{Own: own{"x"}}}, `{"spec":{"own":{"text":null,"empty":{},"was":"x"}}}`},
		{"what encodes itself by a pointer", &farm{ObjectMeta: meta, Spec: farmSpec{Lazy: lazy{Text: "x"}}}, `{"spec":{"lazy":{"text":"x"}}}`},
		{"elements", &farm{ObjectMeta: meta, Spec: farmSpec{
			List: []farmParts{{}}, ByName: map[string]farmParts{"a": {}}, ByNumber: map[int]farmParts{1: {}, 2: {endpoint{Port: 1}}}, Array: &[1]farmParts{},
		}}, `{"spec":{"list":[{}],"byName":{"a":{}},"byNumber":{"1":{},"2":{"inner":{"host":"","port":1}}},"array":[{}]}}`},
		{"a struct in any", &farm{ObjectMeta: meta, Spec: farmSpec{Any: map[string]any{"pod": &corev1.Pod{}, "list": []any{farmParts{}, nil}}}},
			`{"spec":{"any":{"pod":{},"list":[{},null]}}}`},
		{"a label of a StatefulSet", &appsv1.StatefulSet{ObjectMeta: meta}, `{}`},
		{"a label of a HorizontalPodAutoscaler", &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta}, `{}`},

		{"what the schema of an own kind requires", &home{ObjectMeta: meta}, `{"spec":{` + required + `}}`},
		{"elements in an own kind", &home{ObjectMeta: meta, Spec: ownFarm{Items: []struct {
			Inner endpoint `json:"inner"`
		}{{}}}}, `{"spec":{` + required + `,"items":[{}]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := applied(t, test.obj, "")
			for _, member := range []string{"apiVersion", "kind", "metadata"} {
				delete(got, member)
			}
			if diff := cmp.Diff(decoded(t, test.want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An apply of a built-in object with a name alone sends the name alone. The scalars of the root without omitempty are the
// exception: nothing shows whether they were set. An apply of such an object has to name them.
func TestApplyOfANameAloneSendsTheNameAlone(t *testing.T) {
	t.Parallel()
	scalars := map[string]string{
		"ControllerRevision.apps": "revision", "EndpointSlice.discovery.k8s.io": "addressType", "Event": "reportingComponent reportingInstance",
		"PriorityClass.scheduling.k8s.io": "value", "RuntimeClass.node.k8s.io": "handler", "StorageClass.storage.k8s.io": "provisioner",
		"CSIStorageCapacity.storage.k8s.io": "storageClassName", "VolumeAttributesClass.storage.k8s.io": "driverName",
	}
	used := make(map[string]bool)
	seen := 0
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		made, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Fatal(err)
		}
		obj, ok := made.(Object)
		if !ok || !strings.HasPrefix(typ.PkgPath(), "k8s.io/api/") {
			continue
		}
		if _, err := TypeOfObject(obj); err != nil {
			continue // the API server does not serve it
		}
		seen++
		obj.SetName("n")
		got := applied(t, obj, "")
		if diff := cmp.Diff(map[string]any{"name": "n"}, got["metadata"]); diff != "" {
			t.Errorf("%s: %s", gvk, diff)
		}
		for _, member := range []string{"apiVersion", "kind", "metadata"} {
			delete(got, member)
		}
		name := gvk.GroupKind().String()
		if gvk == nodev1alpha1.SchemeGroupVersion.WithKind("RuntimeClass") {
			name = gvk.String() // its handler is in the spec
		}
		if sent := strings.Join(slices.Sorted(maps.Keys(got)), " "); sent != scalars[name] {
			t.Errorf("%s: it sends %v, want %q", gvk, got, scalars[name])
		}
		used[name] = true
	}
	for name := range scalars {
		if !used[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if seen < 100 {
		t.Errorf("%d types were walked", seen)
	}
}

// Promise 10: where the server says that a member is required, the error names the struct that was not set.
func TestErrorNamesTheUnsetStruct(t *testing.T) {
	t.Parallel()
	type (
		farm = CustomResource[farmSpec, farmStatus]
		home = CustomResource[ownFarm, farmStatus]
	)
	refused := func(cause metav1.CauseType, field string) wire.HandlerFunc {
		return refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "refused", func(e *wire.Error) {
			e.Answer.Details = &metav1.StatusDetails{Name: "n", Causes: []metav1.StatusCause{{Type: cause, Field: field}, {Type: cause, Field: field}}}
		})
	}
	for field, test := range map[string]struct {
		obj   Object
		cause metav1.CauseType
		want  string
	}{
		"spec.endpoint":           {&farm{Spec: farmSpec{Quantity: resource.MustParse("1")}}, metav1.CauseTypeFieldValueRequired, "; spec.endpoint was not sent, "},
		"spec.endpoint.host":      {&farm{Spec: farmSpec{Quantity: resource.MustParse("1")}}, metav1.CauseTypeFieldValueRequired, "; spec.endpoint was not sent, "},
		"spec.list[7].inner.port": {&farm{Spec: farmSpec{List: []farmParts{{}}}}, metav1.CauseTypeFieldValueRequired, "; spec.list[0].inner was not sent, "},
		"spec.byName[a].inner":    {&farm{Spec: farmSpec{ByName: map[string]farmParts{"a": {}}}}, metav1.CauseTypeFieldValueRequired, "; spec.byName[a].inner was not sent, "},
		"spec.pointer.host":       {&farm{Spec: farmSpec{Pointer: &endpoint{}}}, metav1.CauseTypeFieldValueRequired, ""},
		"spec.endpoint.port":      {&farm{Spec: farmSpec{Quantity: resource.MustParse("1")}}, metav1.CauseTypeFieldValueInvalid, ""},
		"spec.required.host":      {&home{Spec: ownFarm{Optional: endpoint{Host: "h"}}}, metav1.CauseTypeFieldValueNotSupported, "; spec.required was sent, because the schema requires it, "},
		"spec.nothing":            {&home{Spec: ownFarm{Optional: endpoint{Host: "h"}}}, metav1.CauseTypeFieldValueRequired, ""},
		"spec.required":           {&home{}, metav1.CauseTypeFieldValueRequired, ""},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			test.obj.SetName("n")
			test.obj.SetNamespace("ns")
			_, err := Apply(t.Context(), NewClientFromHandler(scripted(t, refused(test.cause, field))), test.obj)
			if !IsInvalid(err) || test.want == "" && strings.Contains(err.Error(), ";") || strings.Count(err.Error(), ";") > 1 || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
