package yaretest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/internal/plane/schemachange"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// The components that can be stopped, in a control plane of [New]. On an existing cluster (see
// YARETEST_KUBECONFIG) the functions that act on components skip the test.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
)

// Cluster is a running cluster: a control plane of its own, or an existing cluster.
type Cluster struct {
	// plane is the control plane. It is nil for an existing cluster.
	plane      *plane.Plane
	kubeconfig string
	config     *kube.Config
	tests      *testStates
	// sharedByPrograms is what all programs in this process that use the cluster have in common.
	sharedByPrograms *programctx.Shared
	// isShared is true for the control plane of [Shared], which all tests of the process use.
	isShared bool
	// programNamespacesOverride holds the argument of InNamespaces. It is nil if InNamespaces was not called.
	programNamespacesOverride *[]string
}

// shared returns the cluster that all tests of this process use. The first call starts the control plane, which ends
// with the process.
var shared = sync.OnceValues(func() (*Cluster, error) {
	if path := os.Getenv(kubeconfigVariable); path != "" {
		if minor := os.Getenv(plane.KubernetesVariable); minor != "" {
			return nil, fmt.Errorf("%s=%s asks for a control plane, and %s=%s for an existing cluster: unset one of both",
				plane.KubernetesVariable, minor, kubeconfigVariable, path)
		}
		return openExisting(path)
	}
	c, err := start(plane.Options{})
	if err == nil {
		c.isShared = true
	}
	return c, err
})

// Shared returns the control plane of this test process, which the first call starts, or the existing
// cluster of YARETEST_KUBECONFIG. Tests that stop components of a control plane use [New] instead.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// err returns why the control plane has ended, or nil.
func (c *Cluster) err() error {
	if c.plane == nil {
		return nil
	}
	return c.plane.Err()
}

// Option changes the control plane that [New] starts.
type Option interface{ changePlane(o *plane.Options) }

type optionFunc func(*plane.Options)

func (f optionFunc) changePlane(o *plane.Options) { f(o) }

// APIServerArgs adds arguments for kube-apiserver, such as "--watch-cache=false". Without a real node the API server
// dials loopback addresses only, on behalf of webhooks, conversions, APIServices and the subresource proxy. The
// argument "--egress-selector-config-file=FILE" replaces that.
func APIServerArgs(args ...string) Option {
	return optionFunc(func(o *plane.Options) { o.APIServerArgs = append(o.APIServerArgs, args...) })
}

// Nodes sets the number of simulated nodes. The default is 1.
func Nodes(n int) Option {
	return optionFunc(func(o *plane.Options) { o.Nodes = n })
}

// RealNode puts a real node in the place of the simulated nodes: a kubelet, kube-proxy and a Pod
// network, whose Pods run in containers. The node pulls no images. Its images are those in the tar
// files, such as `yare image -o` writes. A real node needs Linux, root, and the installed programs
// containerd, runc, nft and the CNI plugins; without them, the test fails with the way out.
func RealNode(files ...string) Option {
	return optionFunc(func(o *plane.Options) {
		o.RealNode = true
		o.Images = append(o.Images, files...)
	})
}

// Kubernetes sets the minor version of Kubernetes, such as "1.36". The default is that of the environment variable
// YARE_KUBERNETES, else the newest one that `yare version` lists. A test compiles the newest one only: for another one
// the test fails with the command that compiles it.
func Kubernetes(minor string) Option {
	return optionFunc(func(o *plane.Options) { o.Finder.Kubernetes = minor })
}

// New starts a control plane for t alone, and ends it after t. The test may stop and break
// components of it. On an existing cluster (see YARETEST_KUBECONFIG) New skips t.
func New(t testing.TB, options ...Option) *Cluster {
	t.Helper()
	if path := os.Getenv(kubeconfigVariable); path != "" {
		t.Skipf("this test needs a control plane of its own, and %s=%s is set", kubeconfigVariable, path)
	}
	var o plane.Options
	for _, option := range options {
		option.changePlane(&o)
	}
	c, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.plane.Close)
	t.Cleanup(func() { _ = c.sharedByPrograms.Close() }) // the control plane ends too
	return c
}

// start starts a control plane.
func start(o plane.Options) (*Cluster, error) {
	o.Console = console.ForTests("yaretest")
	o.Finder.BuildsDefaultOnly = true
	// The first build takes minutes. The timeout of a test does not count here.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	p, err := plane.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	config, _, err := kube.ConfigSource{Kubeconfig: p.Kubeconfig()}.Load()
	if err != nil {
		p.Close()
		return nil, err
	}
	return &Cluster{
		plane: p, kubeconfig: p.Kubeconfig(), config: config, tests: newTestStates(),
		sharedByPrograms: new(programctx.Shared),
	}, nil
}

// Kubeconfig returns the path of a kubeconfig file with an administrator's rights.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Config returns a client configuration with an administrator's rights. The caller may change
// it.
func (c *Cluster) Config() *kube.Config { return c.config.Clone() }

// Client returns a new client with an administrator's rights. Its connections are closed after t.
func (c *Cluster) Client(t testing.TB) *kube.Client {
	t.Helper()
	return clientOf(t, c.Config())
}

// clientOf returns a client whose connections are closed after t.
func clientOf(t testing.TB, config *kube.Config) *kube.Client {
	t.Helper()
	config.WrapTransport = func(connections http.RoundTripper) http.RoundTripper {
		t.Cleanup((&http.Client{Transport: connections}).CloseIdleConnections)
		return connections
	}
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Namespace creates a namespace for t and returns its name. It deletes the namespace after t,
// and does not wait for the end of the deletion.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client := c.Client(t)
	made, err := kube.Everywhere[corev1.Namespace](client).Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	c.tests.addNamespace(t, made.Name)
	c.removeAfter(t, client, made)
	return made.Name
}

// removeAfter deletes a cluster-scoped object after t.
func (c *Cluster) removeAfter(t testing.TB, client *kube.Client, obj kube.Object) {
	t.Cleanup(func() {
		// The context of the test has ended.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := kube.IgnoreNotFound(client.Delete(ctx, obj)); err != nil && c.err() == nil {
			t.Logf("%s is left behind: %v", obj.GetName(), err)
		}
	})
}

// InNamespaces returns a copy of c, for which [RunParts] runs programs in these namespaces. Without names, the programs
// run in all namespaces. The copy stands for the same cluster as c.
func (c *Cluster) InNamespaces(names ...string) *Cluster {
	narrowed := *c
	narrowed.programNamespacesOverride = &names
	return &narrowed
}

// programNamespaces returns the namespaces in which a program of a test works. None means all.
func (c *Cluster) programNamespaces(test string) []string {
	if c.programNamespacesOverride != nil {
		return *c.programNamespacesOverride
	}
	return c.tests.namespacesFor(test)
}

// ownNamespace returns the namespace that counts as that of a program of a test. configured is the namespace of its
// kubeconfig.
func (c *Cluster) ownNamespace(test, configured string) string {
	for _, namespaces := range [][]string{c.tests.namespacesFor(test), c.programNamespaces(test)} {
		if len(namespaces) > 0 {
			return namespaces[0]
		}
	}
	return configured
}

// Kubectl runs kubectl with an administrator's rights and returns its standard output. If
// kubectl fails, it fails t.
func (c *Cluster) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, err := c.TryKubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// TryKubectl runs kubectl with an administrator's rights and returns its output. err is not nil
// if kubectl fails.
func (c *Cluster) TryKubectl(t testing.TB, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	// A cleanup of a test may run kubectl: its context has ended then.
	binary, err := c.kubectlBinary(context.WithoutCancel(t.Context()))
	if err != nil {
		return "", "", err
	}
	cmd := exec.Command(binary, append([]string{"kubectl", "--kubeconfig", c.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("run kubectl: %w", err)
	}
	return out.String(), errs.String(), err
}

// Stop ends a component as an administrator would. It stays down until StartComponent.
func (c *Cluster) Stop(t testing.TB, component string) {
	c.controlComponent(t, "stop", component, (*plane.Plane).Stop)
}

// Kill ends a component as a crash would. It stays down until StartComponent.
func (c *Cluster) Kill(t testing.TB, component string) {
	c.controlComponent(t, "kill", component, (*plane.Plane).Kill)
}

// StartComponent starts a component that was stopped or killed, and waits until it is ready.
func (c *Cluster) StartComponent(t testing.TB, component string) {
	c.controlComponent(t, "start", component, (*plane.Plane).StartComponent)
}

// Restart stops a component and starts it again, and waits until it is ready.
func (c *Cluster) Restart(t testing.TB, component string) {
	c.controlComponent(t, "restart", component, (*plane.Plane).Restart)
}

// Pause freezes a component until Resume. It keeps its connections and answers nothing.
func (c *Cluster) Pause(t testing.TB, component string) {
	c.controlComponent(t, "pause", component, (*plane.Plane).Pause)
}

// Resume ends a Pause.
func (c *Cluster) Resume(t testing.TB, component string) {
	c.controlComponent(t, "resume", component, (*plane.Plane).Resume)
}

// controlComponent calls action, a method of the control plane, with a component. verb names the action in errors.
func (c *Cluster) controlComponent(
	t testing.TB, verb, component string, action func(*plane.Plane, context.Context, string) error,
) {
	t.Helper()
	c.skipIfExisting(t, verb+" the "+component)
	// This is not the test's own context, because a Cleanup may repair what the test broke.
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeoutOf(t))
	defer cancel()
	if err := action(c.plane, ctx, component); err != nil {
		t.Fatalf("%s %s: %v", verb, component, err)
	}
}

// Compact drops etcd's history. The API server keeps some of it in memory until it is
// restarted.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	c.skipIfExisting(t, "compact the etcd")
	if _, err := c.plane.Compact(t.Context()); err != nil {
		t.Fatalf("compact etcd: %v", err)
	}
}

// ControlPlane returns the control plane of c for package explore, which stops and starts components outside of the
// goroutine of a test. Tests use [Cluster.Kill] and the methods beside it. Error: c is an existing cluster, or all
// tests use c.
func (c *Cluster) ControlPlane() (faults.Components, error) {
	switch {
	case c.plane == nil:
		return nil, fmt.Errorf("the components of the existing cluster %s (%s) cannot be stopped",
			c.config.Host, kubeconfigVariable)
	case c.isShared:
		return nil, errors.New("all tests use the cluster of yaretest.Shared: give one that yaretest.New has started")
	}
	return c.plane, nil
}

// Define applies the CustomResourceDefinition of T, and waits until the server serves T and, after a change of the
// definition, uses its schema. A server that takes longer than ten seconds for that leads to a log line. Tests that
// run at the same time may define the same type.
//
//	yaretest.Define[WebApp](t, cluster)
func Define[T any, P kube.DefinedObjectOf[T]](t testing.TB, cluster *Cluster) {
	t.Helper()
	defined, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, defined)
}

// Define applies the CustomResourceDefinitions of types, and waits until the server serves them.
// Several types of one kind are its versions. [Define] is the short form for one type.
func (c *Cluster) Define(t testing.TB, types ...kube.Type) {
	t.Helper()
	crds, err := crd.From(types...)
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(t).WithFieldManager("yaretest")
	definitions := kube.Dynamic(client, wire.Resource{
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
		},
		Plural: "customresourcedefinitions", ClusterScoped: true,
	}, "")
	var names []string
	for _, each := range crds {
		names = append(names, each.Metadata.Name)
	}
	before, err := schemachange.Take(t.Context(), c.Config(), names)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range crds {
		content, err := kube.Marshal(each)
		if err != nil {
			t.Fatal(err)
		}
		// Tests that run side by side may make the same definition at the same moment.
		Eventually(t, func() error {
			definition := new(unstructured.Unstructured)
			if err := definition.UnmarshalJSON(content); err != nil {
				return err
			}
			_, err := definitions.Apply(t.Context(), definition)
			return err
		})
		WaitFor(t, definitions, each.Metadata.Name, func(definition *unstructured.Unstructured) error {
			return checkCondition(definition, "Established")
		})
	}
	for _, each := range types {
		namespace := "default"
		if each.Resource.ClusterScoped {
			namespace = ""
		}
		Eventually(t, func() error {
			_, err := kube.Dynamic(client, each.Resource, namespace).Get(t.Context(), "yaretest")
			switch {
			case err == nil, kube.IsNotFound(err) && !kube.IsNoResource(err):
				return nil
			case kube.IsNoResource(err):
				return errors.New("the server does not serve " + each.Resource.String() + " yet")
			default:
				return fmt.Errorf("see whether %s is served: %w", each.Resource, err)
			}
		})
	}
	if err := before.Wait(t.Context()); err != nil {
		t.Log(err)
	}
}

// skipIfExisting skips t on an existing cluster, because t is about to do something to the control
// plane.
func (c *Cluster) skipIfExisting(t testing.TB, action string) {
	t.Helper()
	if c.plane == nil {
		t.Skipf("this test would %s of the existing cluster %s (%s)", action, c.config.Host, kubeconfigVariable)
	}
}

// kubectlBinary returns the path of a binary that has kubectl as its subcommand kubectl.
func (c *Cluster) kubectlBinary(ctx context.Context) (string, error) {
	if c.plane != nil {
		return c.plane.Binary(), nil
	}
	return plane.Finder{Console: console.ForTests("yaretest")}.Find(ctx)
}

// ApplyPolicies applies the admission policies that a program prints among its manifests, such as those of the parts of
// package operator/admissionpolicy. [RunParts] applies the policies of its parts by itself. path is the program, as
// [Build] has compiled it. args are flags of its subcommand manifests, which also gets --image and the namespace of the
// test. Define the kinds that the policies are about before: see [Cluster.Define].
//
//	yaretest.Define[WebApp](t, cluster)
//	namespace := cluster.Namespace(t)
//	cluster.ApplyPolicies(t, yaretest.Build(t, "."))
//
// The policies concern objects in the namespaces of t alone, as [RunParts] has them, and objects outside of namespaces.
// So tests with the same policies can run in parallel. In this cluster the names of the policies end with the first
// namespace. ApplyPolicies returns when the API server enforces the policies, also those of a kind that was defined a
// moment ago. It deletes them after t.
//
// A mistake that the type check of the API server finds in an expression fails t, and the error names the policy and
// the expression. So does a program that prints no policy. Other manifests are not applied, such as a ConfigMap with
// parameters of a policy: the test creates it.
func (c *Cluster) ApplyPolicies(t testing.TB, path string, args ...string) {
	t.Helper()
	policies, err := printedPolicies(t.Context(), path,
		append([]string{"--namespace", c.ownNamespace(t.Name(), "default")}, args...))
	if err != nil {
		t.Fatal(err)
	}
	c.applyPolicies(t, policies)
}

// applyPolicies applies policies, narrowed to the namespaces of t, and returns when the API server enforces them. It
// deletes them after t.
func (c *Cluster) applyPolicies(t testing.TB, policies []unstructured.Unstructured) {
	t.Helper()
	namespaces := c.programNamespaces(t.Name())
	suffix := strings.ToLower(rand.Text())
	if len(namespaces) > 0 {
		suffix = namespaces[0]
	}
	policies, err := policy.Narrow(policies, suffix, corev1.LabelMetadataName, namespaces)
	if err != nil {
		t.Fatal(err)
	}
	client := c.Client(t)
	t.Cleanup(func() {
		// The context of the test has ended.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := policy.Remove(ctx, client, policies); err != nil && c.err() == nil {
			t.Logf("policies are left behind: %v", err)
		}
	})
	timeout := timeoutOf(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout,
		fmt.Errorf("the API server does not enforce the policies after %s", timeout))
	defer cancel()
	if err := policy.Apply(ctx, client, policies, func(text string) { t.Log(text) }); err != nil {
		t.Fatal(err)
	}
}

// Run starts a program that finds the cluster by KUBECONFIG, as administrator. A program that
// still runs at the end of t is killed.
func (c *Cluster) Run(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	return Run(t, c.Kubeconfig(), path, args...)
}

func (c *Cluster) targetCluster() *Cluster { return c }

// Proxy starts a proxy of the API server with an administrator's rights. It ends after t.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	return newProxy(t, c, c.Config(), "")
}

// ServiceAccount creates an account in a namespace, and a kubeconfig file for it that is removed
// after t.
func (c *Cluster) ServiceAccount(t testing.TB, namespace string) *ServiceAccount {
	t.Helper()
	made, err := kube.Namespaced[corev1.ServiceAccount](c.Client(t), namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "account-", Namespace: namespace}})
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(c.Kubectl(t, "", "create", "token", made.Name, "--namespace", namespace, "--duration=2h"))
	content := loopback.Kubeconfig(&kube.Config{Host: c.config.Host, CAData: c.config.CAData, BearerToken: token},
		namespace)
	return &ServiceAccount{cluster: c, namespace: namespace, name: made.Name, kubeconfig: writeKubeconfig(t, content)}
}
