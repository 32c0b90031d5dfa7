package crd_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// openAPI is what an OpenAPI document says of a type or a field, as far as it matters here.
type openAPI struct {
	Properties map[string]openAPI `json:"properties"`
	Default    any                `json:"default"`
	ListType   string             `json:"x-kubernetes-list-type"`
	ListKeys   []string           `json:"x-kubernetes-list-map-keys"`
	MapType    string             `json:"x-kubernetes-map-type"`
}

// The lists, maps and defaults of types of k8s.io/api agree with a real API server.
func TestTypesOfKubernetesAreThoseOfTheServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster := yaretest.Shared(t)
	server := map[string]openAPI{}
	for _, path := range []string{
		"api/v1", "apis/apps/v1", "apis/autoscaling/v1", "apis/autoscaling/v2", "apis/batch/v1", "apis/discovery.k8s.io/v1", "apis/networking.k8s.io/v1",
		"apis/node.k8s.io/v1", "apis/policy/v1", "apis/rbac.authorization.k8s.io/v1", "apis/storage.k8s.io/v1",
	} {
		var document struct {
			Components struct {
				Schemas map[string]openAPI `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal([]byte(cluster.Kubectl(t, "", "get", "--raw", "/openapi/v3/"+path)), &document); err != nil {
			t.Fatal(err)
		}
		for name, s := range document.Components.Schemas {
			server[name] = s
		}
	}
	compared := 0
	for _, typ := range structsOf(
		corev1.Pod{}, corev1.Service{}, corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{}, corev1.Node{}, corev1.ServiceAccount{}, corev1.Endpoints{},
		corev1.ReplicationController{}, corev1.LimitRange{}, corev1.ResourceQuota{}, corev1.Namespace{}, corev1.Secret{}, corev1.ConfigMap{},
		appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.DaemonSet{}, appsv1.ReplicaSet{},
		autoscalingv1.HorizontalPodAutoscaler{}, autoscalingv2.HorizontalPodAutoscaler{}, batchv1.CronJob{}, discoveryv1.EndpointSlice{},
		networkingv1.Ingress{}, networkingv1.NetworkPolicy{}, networkingv1.IngressClass{}, nodev1.RuntimeClass{}, policyv1.PodDisruptionBudget{},
		rbacv1.ClusterRole{}, rbacv1.ClusterRoleBinding{}, storagev1.StorageClass{}, storagev1.CSIDriver{},
	) {
		name := "io." + strings.NewReplacer("k8s.io/", "k8s.", "/", ".").Replace(typ.PkgPath()) + "." + typ.Name()
		want, ok := server[name]
		if !ok {
			continue // an inlined type, or one that the server does not know yet
		}
		compared++
		compareWithServer(t, typ, schemaOf(t, typ), want)
	}
	if compared < 200 {
		t.Errorf("only %d types were compared", compared)
	}
}

// compareWithServer compares the schema of a type with what the server says of it.
func compareWithServer(t *testing.T, typ reflect.Type, got *crd.Schema, want openAPI) {
	if got.MapType != want.MapType {
		t.Errorf("%s: the map type is %q, and the server's is %q", typ, got.MapType, want.MapType)
	}
	for name, p := range got.Properties {
		w, ok := want.Properties[name]
		if !ok {
			continue // the server does not know the field yet
		}
		field := typ.String() + "." + name
		if p.Type == "object" && p.AdditionalProperties != nil && p.MapType != strings.TrimSuffix(w.MapType, "granular") { // the default of a server
			t.Errorf("%s: the map type is %q, and the server's is %q", field, p.MapType, w.MapType)
		}
		listType := p.ListType
		if listType == "" && w.ListType == "atomic" {
			listType = "atomic" // the default of a server
		}
		// A server refuses a definition with a key that may be missing.
		optional := p.Items != nil && slices.ContainsFunc(w.ListKeys, func(key string) bool {
			k := p.Items.Properties[key]
			return k != nil && k.Default == nil && !slices.Contains(p.Items.Required, key)
		})
		// The list of this alpha field has keys since 1.37.
		gotKeys := field == "v1.PodStatus.nodeAllocatableResourceClaimStatuses" && w.ListType == "atomic"
		if !optional && !gotKeys && (listType != w.ListType || !slices.Equal(p.ListMapKeys, w.ListKeys)) {
			t.Errorf("%s: the list type is %q with the keys %q, and the server's is %q with %q", field, p.ListType, p.ListMapKeys, w.ListType, w.ListKeys)
		}
		var own any
		if p.Default != nil {
			own = asAny(t, p.Default)
		}
		// The document gives fields without omitempty their zero value as default.
		if isZero := w.Default == nil || reflect.ValueOf(w.Default).IsZero() || reflect.DeepEqual(w.Default, map[string]any{}); own != nil || !isZero {
			if !reflect.DeepEqual(own, w.Default) {
				t.Errorf("%s: the default is %v, and the server's is %v", field, own, w.Default)
			}
		}
	}
}

// schemaOf returns the schema of a field of the type typ.
func schemaOf(t *testing.T, typ reflect.Type) *crd.Schema {
	t.Helper()
	definition := kube.Definition{Group: "example.com", Version: "v1", Kind: "Holder"}
	all, err := crd.From(kube.Type{
		Go: reflect.StructOf([]reflect.StructField{
			{Name: "Metadata", Type: reflect.TypeFor[metav1.ObjectMeta](), Tag: `json:"metadata"`},
			{Name: "V", Type: typ, Tag: `json:"v"`},
		}),
		Resource:   wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Holder"}, Plural: "holders"},
		Definition: &definition,
	})
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["v"]
}

// structsOf returns the types of k8s.io/api that the objects consist of.
func structsOf(objects ...any) (all []reflect.Type) {
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			add(t.Elem())
		case reflect.Struct:
			if !strings.HasPrefix(t.PkgPath(), "k8s.io/api/") || slices.Contains(all, t) {
				return
			}
			all = append(all, t)
			for i := range t.NumField() {
				add(t.Field(i).Type)
			}
		}
	}
	for _, object := range objects {
		add(reflect.TypeOf(object))
	}
	return all
}
