package yaretest

import (
	"bytes"
	"context"
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

	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/kube"
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
