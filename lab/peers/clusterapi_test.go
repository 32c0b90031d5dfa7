package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
	"sigs.k8s.io/cluster-api/util/index"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/yare-go/yare/yaretest"
)

// providerKinds has the kinds of the provider of the test, with the status that says that an object is ready.
func providerKinds() map[schema.GroupVersionKind]map[string]any {
	kind := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group + ".cluster.x-k8s.io", Version: "v1beta2", Kind: kind}
	}
	initialized := func(field string) map[string]any {
		return map[string]any{"initialization": map[string]any{field: true}}
	}
	config := initialized("dataSecretCreated")
	config["dataSecretName"] = "data"
	return map[schema.GroupVersionKind]map[string]any{
		kind("infrastructure", "ExampleCluster"):         initialized("provisioned"),
		kind("infrastructure", "ExampleMachine"):         initialized("provisioned"),
		kind("infrastructure", "ExampleMachineTemplate"): nil,
		kind("bootstrap", "ExampleConfig"):               config,
		kind("bootstrap", "ExampleConfigTemplate"):       nil,
		kind("controlplane", "ExampleControlPlane"):      initialized("controlPlaneInitialized"),
	}
}

// defineProvider makes the kinds of the provider.
func defineProvider(t *testing.T) {
	var text strings.Builder
	for k := range providerKinds() {
		fmt.Fprintf(&text, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[1]s, labels: {cluster.x-k8s.io/v1beta2: v1beta2}}
spec:
  group: %[1]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[2]ss, singular: %[2]s}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.Group, strings.ToLower(k.Kind), k.Kind)
	}
	defineFrom(t, text.String(), "-")
}

// setUpClusterAPI adds the controllers of Cluster API that work on Machines, as its main function does.
func setUpClusterAPI(ctx context.Context, mgr manager.Manager) error {
	if err := index.AddDefaultIndexes(ctx, mgr); err != nil {
		return err
	}
	secrets, err := setup.CreateSecretCachingClient(mgr)
	if err != nil {
		return err
	}
	o := controller.Options{MaxConcurrentReconciles: 4}
	clusters, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: secrets, Cache: setup.ClusterCacheCacheOptions(),
		Client: setup.ClusterCacheClientOptions("peers", 100, 200),
	}, o)
	if err != nil {
		return err
	}
	read, write := mgr.GetAPIReader(), mgr.GetClient()
	return errors.Join(
		(&cluster.Reconciler{
			Client: write, APIReader: read, ClusterCache: clusters, RemoteConnectionGracePeriod: time.Minute,
		}).SetupWithManager(ctx, mgr, o),
		(&machine.Reconciler{
			Client: write, APIReader: read, ClusterCache: clusters, RemoteConditionsGracePeriod: 5 * time.Minute,
		}).SetupWithManager(ctx, mgr, o),
		(&machineset.Reconciler{Client: write, APIReader: read, ClusterCache: clusters}).SetupWithManager(ctx, mgr, o),
		(&machinedeployment.Reconciler{Client: write, APIReader: read}).SetupWithManager(ctx, mgr, o),
		(&machinehealthcheck.Reconciler{Client: write, ClusterCache: clusters}).SetupWithManager(ctx, mgr, o),
	)
}

// clusterOfTest is a cluster of Cluster API in a namespace of a test. Its API server is that of the test.
type clusterOfTest struct {
	client.Client
	namespace string
}

func (c clusterOfTest) meta(name string) metav1.ObjectMeta {
	labels := map[string]string{clusterv1.ClusterNameLabel: "main"}
	return metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: labels}
}

// create makes an object of the provider.
func (c clusterOfTest) create(
	t *testing.T, kind, name string, spec map[string]any,
) clusterv1.ContractVersionedObjectReference {
	t.Helper()
	for k := range providerKinds() {
		if k.Kind == kind {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			o.SetGroupVersionKind(k)
			o.SetNamespace(c.namespace)
			o.SetName(name)
			must(t, c.Create(t.Context(), o))
			return clusterv1.ContractVersionedObjectReference{APIGroup: k.Group, Kind: kind, Name: name}
		}
	}
	t.Fatalf("the provider has no %s", kind)
	panic("not reached")
}

// newCluster makes a Cluster that has an infrastructure, a control plane and a kubeconfig.
func newCluster(t *testing.T, c client.Client) (clusterOfTest, *clusterv1.Cluster) {
	of := clusterOfTest{c, yaretest.Shared(t).Namespace(t)}
	kubeconfig, err := os.ReadFile(yaretest.Shared(t).Kubeconfig())
	must(t, err)
	secret := &corev1.Secret{ObjectMeta: of.meta("main-kubeconfig"), Data: map[string][]byte{"value": kubeconfig}}
	must(t, c.Create(t.Context(), secret))
	main := &clusterv1.Cluster{
		ObjectMeta: of.meta("main"),
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "main.example.com", Port: 443},
			InfrastructureRef:    of.create(t, "ExampleCluster", "main", nil),
			ControlPlaneRef:      of.create(t, "ExampleControlPlane", "main", nil),
		},
	}
	must(t, c.Create(t.Context(), main))
	t.Cleanup(func() { // Nodes are in no namespace
		_ = c.DeleteAllOf(context.Background(), new(corev1.Node), client.MatchingLabels{"peers": of.namespace})
	})
	return of, main
}

// newMachines makes a MachineDeployment, whose Machines have a version.
func (c clusterOfTest) newMachines(
	t *testing.T, name, version string, replicas int32,
) *clusterv1.MachineDeployment {
	labels := map[string]string{clusterv1.ClusterNameLabel: "main", "pool": name}
	empty := map[string]any{"template": map[string]any{"spec": map[string]any{}}}
	template := clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}}
	template.Spec = clusterv1.MachineSpec{
		ClusterName: "main", Version: version,
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: c.create(t, "ExampleConfigTemplate", name, empty)},
		InfrastructureRef: c.create(t, "ExampleMachineTemplate", name, empty),
	}
	d := &clusterv1.MachineDeployment{ObjectMeta: c.meta(name)}
	d.Spec = clusterv1.MachineDeploymentSpec{
		ClusterName: "main", Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: labels}, Template: template,
		Rollout: clusterv1.MachineDeploymentRolloutSpec{Strategy: clusterv1.MachineDeploymentRolloutStrategy{
			Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
				MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
			},
		}},
	}
	must(t, c.Create(t.Context(), d))
	return d
}

// list returns the objects of the provider of a kind.
func (c clusterOfTest) list(ctx context.Context, k schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := new(unstructured.UnstructuredList)
	list.SetGroupVersionKind(k)
	err := c.List(ctx, list, client.InNamespace(c.namespace))
	return list.Items, err
}

// provide does what the provider does: it makes all its objects ready, and gives each machine a Node.
func (c clusterOfTest) provide(ctx context.Context) error {
	for k, status := range providerKinds() {
		objects, err := c.list(ctx, k)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if _, isReady := o.Object["status"]; isReady || status == nil || o.GetDeletionTimestamp() != nil {
				continue
			}
			before := o.DeepCopy()
			if k.Kind == "ExampleMachine" {
				id := "example:///" + string(o.GetUID())
				node := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: id}}
				node.Name, node.Labels = o.GetName()+"-"+c.namespace, map[string]string{"peers": c.namespace}
				if err := c.Create(ctx, node); err != nil && !apierrors.IsAlreadyExists(err) {
					return err
				}
				if err := unstructured.SetNestedField(o.Object, id, "spec", "providerID"); err != nil {
					return err
				}
				if err := c.Patch(ctx, &o, client.MergeFrom(before)); err != nil {
					return err
				}
				before = o.DeepCopy()
			}
			o.Object["status"] = status
			if err := c.Status().Patch(ctx, &o, client.MergeFrom(before)); err != nil {
				return err
			}
		}
	}
	return c.keepNodesReady(ctx)
}

// keepNodesReady does what a kubelet does for the Nodes of the provider.
func (c clusterOfTest) keepNodesReady(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, client.MatchingLabels{"peers": c.namespace}); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if len(node.Status.Conditions) > 0 && node.Status.Conditions[0].Status == corev1.ConditionTrue &&
			time.Since(node.Status.Conditions[0].LastHeartbeatTime.Time) < 10*time.Second {
			continue
		}
		node.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()},
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse},
		}
		if err := client.IgnoreNotFound(c.Status().Update(ctx, &node)); err != nil {
			return err
		}
	}
	return nil
}

// eventually lets the provider work until check is satisfied.
func (c clusterOfTest) eventually(t *testing.T, check func() error) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		if err := c.provide(t.Context()); err != nil {
			return err
		}
		return check()
	})
}

// machines returns the Machines that are there.
func (c clusterOfTest) machines(ctx context.Context) ([]clusterv1.Machine, error) {
	var list clusterv1.MachineList
	err := c.List(ctx, &list, client.InNamespace(c.namespace))
	return list.Items, err
}

// running waits until there are n Machines, all of a version and running, until each has its objects of the provider, and
// until the status of the MachineDeployment says so.
func (c clusterOfTest) running(
	t *testing.T, d *clusterv1.MachineDeployment, version string, n int32,
) []clusterv1.Machine {
	t.Helper()
	var found []clusterv1.Machine
	c.eventually(t, func() (err error) {
		if found, err = c.machines(t.Context()); err != nil {
			return err
		}
		for _, m := range found {
			if m.Status.Phase != "Running" || m.Spec.Version != version || !m.Status.NodeRef.IsDefined() {
				return fmt.Errorf("the Machine %s of version %s: %+v", m.Name, m.Spec.Version, m.Status)
			}
		}
		if len(found) != int(n) {
			return fmt.Errorf("there are %d Machines", len(found))
		}
		for k := range providerKinds() {
			if k.Kind == "ExampleMachine" || k.Kind == "ExampleConfig" {
				if objects, err := c.list(t.Context(), k); err != nil || len(objects) != int(n) {
					return fmt.Errorf("there are %d objects of %s: %v", len(objects), k.Kind, err)
				}
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		for name, replicas := range map[string]*int32{
			"all": d.Status.Replicas, "ready": d.Status.ReadyReplicas,
			"available": d.Status.AvailableReplicas, "up to date": d.Status.UpToDateReplicas,
		} {
			if replicas == nil || *replicas != n {
				return fmt.Errorf("the status has another number of replicas that are %s: %+v", name, d.Status)
			}
		}
		return nil
	})
	return found
}

// change changes the MachineDeployment.
func (c clusterOfTest) change(t *testing.T, d *clusterv1.MachineDeployment, change func()) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		change()
		return c.Update(t.Context(), d)
	})
}

// gone waits until there are no Machines, no objects of the provider that belong to them, and no object o.
func (c clusterOfTest) gone(t *testing.T, o client.Object) {
	t.Helper()
	c.eventually(t, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is still there: %v", o.GetName(), err)
		}
		if found, err := c.machines(t.Context()); err != nil || len(found) > 0 {
			return fmt.Errorf("%d Machines are still there: %v", len(found), err)
		}
		for k := range providerKinds() {
			if k.Kind == "ExampleMachine" || k.Kind == "ExampleConfig" {
				if objects, err := c.list(t.Context(), k); err != nil || len(objects) > 0 {
					return fmt.Errorf("%d objects of %s are still there: %v", len(objects), k.Kind, err)
				}
			}
		}
		return nil
	})
}

func TestClusterAPI(t *testing.T) {
	define(t, "sigs.k8s.io/cluster-api", "core/config/crd/bases")
	defineProvider(t)
	scheme := schemeOf(t, clientgoscheme.AddToScheme, clusterv1.AddToScheme)
	options := func(name string) manager.Options {
		o := manager.Options{
			Cache: setup.ManagerCacheOptions(scheme, name, "", 10*time.Minute), Client: setup.ManagerClientOptions(),
		}
		o.Cache.NewInformer = nil // it gives informers of client-go names for their metrics
		return o
	}
	o := operator{scheme: scheme, options: options, setUp: setUpClusterAPI}
	forBoth(t, o, func(t *testing.T, c client.Client) {
		t.Run("Machines are made, scaled, and rolled out", func(t *testing.T) {
			of, _ := newCluster(t, c)
			d := of.newMachines(t, "workers", "v1.36.1", 2)
			before := of.running(t, d, "v1.36.1", 2)
			of.change(t, d, func() { *d.Spec.Replicas = 3 })
			of.running(t, d, "v1.36.1", 3)
			of.change(t, d, func() { *d.Spec.Replicas = 1 })
			of.running(t, d, "v1.36.1", 1)
			of.change(t, d, func() { d.Spec.Template.Spec.Version = "v1.37.2" })
			after := of.running(t, d, "v1.37.2", 1)
			if after[0].Name == before[0].Name || after[0].Name == before[1].Name {
				t.Error("the rollout kept a Machine")
			}
			must(t, c.Delete(t.Context(), d))
			of.gone(t, d)
		})
		t.Run("a Machine that is not healthy is replaced", func(t *testing.T) {
			of, _ := newCluster(t, c)
			d := of.newMachines(t, "workers", "v1.36.1", 2)
			sick := of.running(t, d, "v1.36.1", 2)[0]
			check := &clusterv1.MachineHealthCheck{ObjectMeta: of.meta("workers")}
			check.Spec = clusterv1.MachineHealthCheckSpec{
				ClusterName: "main", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}},
				Checks: clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: new(int32(600))},
			}
			must(t, c.Create(t.Context(), check))
			of.eventually(t, func() error {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(check), check); err != nil {
					return err
				}
				if healthy := check.Status.CurrentHealthy; healthy == nil || *healthy != 2 {
					return fmt.Errorf("the status of the check is %+v", check.Status)
				}
				return nil
			})
			patch := client.MergeFrom(sick.DeepCopy())
			sick.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
			must(t, c.Patch(t.Context(), &sick, patch))
			of.eventually(t, func() error {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(&sick), &sick); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the Machine is still there: %v", err)
				}
				return nil
			})
			of.running(t, d, "v1.36.1", 2)
		})
		t.Run("the deletion of a Cluster deletes its Machines", func(t *testing.T) {
			of, main := newCluster(t, c)
			d := of.newMachines(t, "workers", "v1.36.1", 2)
			of.running(t, d, "v1.36.1", 2)
			must(t, c.Delete(t.Context(), main))
			of.gone(t, main)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); !apierrors.IsNotFound(err) {
				t.Errorf("the MachineDeployment is still there: %v", err)
			}
		})
	})
}
