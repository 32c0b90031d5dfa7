package interop

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	acmev1 "github.com/cert-manager/cert-manager/pkg/apis/acme/v1"
	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	istiov1 "istio.io/client-go/pkg/apis/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// theirs makes the struct that embeds it, beside a type of another project, a foreign kind.
type theirs struct{}

func (theirs) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Theirs", Foreign: true}
}

// publishedObjects returns an object of each kind of five modules that other projects publish.
func publishedObjects() []kube.Object {
	return []kube.Object{
		&struct {
			clusterv1.Cluster
			theirs
		}{},
		&struct {
			clusterv1.ClusterClass
			theirs
		}{},
		&struct {
			clusterv1.Machine
			theirs
		}{},
		&struct {
			clusterv1.MachineDeployment
			theirs
		}{},
		&struct {
			clusterv1.MachineDrainRule
			theirs
		}{},
		&struct {
			clusterv1.MachineHealthCheck
			theirs
		}{},
		&struct {
			clusterv1.MachinePool
			theirs
		}{},
		&struct {
			clusterv1.MachineSet
			theirs
		}{},
		&struct {
			clusterv1beta1.Cluster
			theirs
		}{},
		&struct {
			clusterv1beta1.ClusterClass
			theirs
		}{},
		&struct {
			clusterv1beta1.Machine
			theirs
		}{},
		&struct {
			clusterv1beta1.MachineDeployment
			theirs
		}{},
		&struct {
			clusterv1beta1.MachineDrainRule
			theirs
		}{},
		&struct {
			clusterv1beta1.MachineHealthCheck
			theirs
		}{},
		&struct {
			clusterv1beta1.MachinePool
			theirs
		}{},
		&struct {
			clusterv1beta1.MachineSet
			theirs
		}{},
		&struct {
			gatewayv1.BackendTLSPolicy
			theirs
		}{},
		&struct {
			gatewayv1.GRPCRoute
			theirs
		}{},
		&struct {
			gatewayv1.GatewayClass
			theirs
		}{},
		&struct {
			gatewayv1.Gateway
			theirs
		}{},
		&struct {
			gatewayv1.HTTPRoute
			theirs
		}{},
		&struct {
			gatewayv1.ListenerSet
			theirs
		}{},
		&struct {
			gatewayv1.ReferenceGrant
			theirs
		}{},
		&struct {
			gatewayv1.TCPRoute
			theirs
		}{},
		&struct {
			gatewayv1.TLSRoute
			theirs
		}{},
		&struct {
			gatewayv1.UDPRoute
			theirs
		}{},
		&struct {
			certmanagerv1.Certificate
			theirs
		}{},
		&struct {
			certmanagerv1.CertificateRequest
			theirs
		}{},
		&struct {
			certmanagerv1.ClusterIssuer
			theirs
		}{},
		&struct {
			certmanagerv1.Issuer
			theirs
		}{},
		&struct {
			acmev1.Challenge
			theirs
		}{},
		&struct {
			acmev1.Order
			theirs
		}{},
		&struct {
			monitoringv1.Alertmanager
			theirs
		}{},
		&struct {
			monitoringv1.PodMonitor
			theirs
		}{},
		&struct {
			monitoringv1.Probe
			theirs
		}{},
		&struct {
			monitoringv1.Prometheus
			theirs
		}{},
		&struct {
			monitoringv1.PrometheusRule
			theirs
		}{},
		&struct {
			monitoringv1.ServiceMonitor
			theirs
		}{},
		&struct {
			monitoringv1.ThanosRuler
			theirs
		}{},
		&struct {
			istiov1.DestinationRule
			theirs
		}{},
		&struct {
			istiov1.Gateway
			theirs
		}{},
		&struct {
			istiov1.ServiceEntry
			theirs
		}{},
		&struct {
			istiov1.Sidecar
			theirs
		}{},
		&struct {
			istiov1.VirtualService
			theirs
		}{},
		&struct {
			istiov1.WorkloadEntry
			theirs
		}{},
		&struct {
			istiov1.WorkloadGroup
			theirs
		}{},
	}
}

// TestApplyOfAPublishedTypeWithANameAlone applies an object with a name alone of each published kind. The apply sends the name
// alone, also when the same object is applied again.
func TestApplyOfAPublishedTypeWithANameAlone(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, clusterv1beta1.AddToScheme, gatewayv1.Install, certmanagerv1.AddToScheme, acmev1.AddToScheme,
		monitoringv1.AddToScheme, istiov1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	missing := make(map[reflect.Type]bool)
	for gvk, kind := range scheme.AllKnownTypes() {
		_, isObject := reflect.New(kind).Interface().(kube.Object)
		if isObject && !strings.HasPrefix(kind.PkgPath(), "k8s.io/apimachinery/") && !strings.HasSuffix(gvk.Kind, "List") {
			missing[kind] = true
		}
	}
	var sent []byte
	c := kube.NewClientFromHandler(wire.HandlerFunc(func(_ context.Context, r *wire.Request) (*wire.Response, error) {
		sent = r.Body
		return &wire.Response{Code: http.StatusOK, Body: []byte(`{}`)}, nil
	}))
	for _, obj := range publishedObjects() {
		kind := reflect.TypeOf(obj).Elem().Field(0).Type
		delete(missing, kind)
		obj.SetName("n")
		obj.SetNamespace("ns")
		for range 2 {
			if _, err := kube.Apply(t.Context(), c, obj); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			var got map[string]any
			if err := json.Unmarshal(sent, &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"apiVersion": "example.com/v1", "kind": "Theirs", "metadata": map[string]any{"name": "n", "namespace": "ns"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", kind, diff)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("publishedObjects lacks %v", slices.Collect(maps.Keys(missing)))
	}
}
