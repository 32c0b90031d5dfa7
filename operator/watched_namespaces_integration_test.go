package operator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy/loopback"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// start runs the program with the account of the installation, as its Pods do, until stop or the end of the test. stop returns the
// log. The manifests have been applied.
func (i *installation) start(args ...string) (stop func() (log string)) {
	i.t.Helper()
	token := strings.TrimSpace(i.cluster.Kubectl(i.t, "", "create", "token", i.name, "--namespace", i.in, "--duration=2h"))
	config := i.cluster.Config()
	file := filepath.Join(i.t.TempDir(), "kubeconfig")
	content := loopback.Kubeconfig(&kube.Config{Host: config.Host, CAData: config.CAData, BearerToken: token}, i.in)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		i.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var log string
	var running sync.WaitGroup
	running.Go(func() {
		_, _, log = operator.CallProgram(ctx, i.name, i.program, append([]string{"run", "--kubeconfig", file}, args...)...)
	})
	stop = sync.OnceValue(func() string {
		cancel()
		running.Wait()
		return log
	})
	i.t.Cleanup(func() { stop() })
	return stop
}

// createWithoutFinalizer creates a robot that the program has not seen.
func (i *installation) createWithoutFinalizer(namespace, name string) {
	i.t.Helper()
	text := fmt.Sprintf("apiVersion: %s\nkind: Robot\nmetadata: {namespace: %s, name: %s}\nspec: {}\n", i.robots.GroupVersion(), namespace, name)
	yaretest.Eventually(i.t, func() error { // the server takes its time with a new definition
		_, stderr, err := i.cluster.TryKubectl(i.t, text, "create", "-f", "-")
		if err != nil && !strings.Contains(stderr, "AlreadyExists") {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
}

// waitForFinalizers waits until an object has these finalizers.
func (i *installation) waitForFinalizers(kind, namespace, name string, want ...string) {
	i.t.Helper()
	r, err := i.resourceNamed(kind)
	if err != nil {
		i.t.Fatal(err)
	}
	yaretest.WaitFor(i.t, kube.Metadata(i.client, r, namespace), name, func(o *metav1.PartialObjectMetadata) error {
		if got := o.Finalizers; !slices.Equal(got, want) {
			return fmt.Errorf("%s %s/%s has the finalizers %q, not %q", kind, namespace, name, got, want)
		}
		return nil
	})
}

type groupOfNamespacesThatGo struct{}

func (groupOfNamespacesThatGo) Group() string { return "gone-namespaces.example.com" }

// A program of two namespaces is restarted after one of them was deleted. It reconciles the objects of the other one. Before, it
// did nothing, and was never ready. The command manifests names the namespace that does not exist.
func TestWatchedNamespaceThatIsGone(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfNamespacesThatGo](t)
	close(i.hold)
	goes, stays := i.cluster.Namespace(t), i.cluster.Namespace(t)
	watched := []string{"--watch-namespace", goes, "--watch-namespace", stays}
	i.apply(watched...)
	stop := i.start(watched...)
	i.createWithoutFinalizer(stays, "first")
	i.waitForFinalizers(i.robots.String(), stays, "first", i.cleanup)
	i.cluster.Kubectl(t, "", "delete", "namespace", goes, "--timeout=60s")
	i.createWithoutFinalizer(stays, "second")
	i.waitForFinalizers(i.robots.String(), stays, "second", i.cleanup)
	stop()
	stop = i.start(watched...)
	i.createWithoutFinalizer(stays, "third")
	i.waitForFinalizers(i.robots.String(), stays, "third", i.cleanup)
	status, _, stderr := i.call(append([]string{"manifests", "--image=i:1", "--check"}, watched...)...)
	if status == 0 || !strings.Contains(stderr, "the namespace "+goes+" does not exist") {
		t.Errorf("status %d, %s", status, stderr)
	}
	i.cluster.Kubectl(t, "", "delete", i.robots.String(), "--all", "--namespace", stays)
	if log := stop(); !strings.Contains(log, "if the namespace "+goes+" was deleted, its Role has gone with it") {
		t.Errorf("the log is\n%s", log)
	}
}

const roleFinalizer = "manifests.yare.dev/cleanups"

// role returns the name of the Role and the RoleBinding in watched namespaces.
func (i *installation) role() string { return i.name + "." + i.in }

// waitForRole waits until the Role and the RoleBinding in a namespace have these finalizers.
func (i *installation) waitForRole(namespace string, want ...string) {
	i.t.Helper()
	i.waitForFinalizers("rolebinding", namespace, i.role(), want...)
	i.waitForFinalizers("role", namespace, i.role(), want...)
}

// createNamespace creates a namespace again that was deleted.
func (i *installation) createNamespace(name string) {
	i.t.Helper()
	i.cluster.Kubectl(i.t, "", "create", "namespace", name)
}

type groupOfNamespacesThatEnd struct{}

func (groupOfNamespacesThatEnd) Group() string { return "ending-namespaces.example.com" }

// A watched namespace ends by itself when it is deleted: the Role of the program goes after its last cleanup. Before, the Role went
// before the objects, so that nobody could ever remove their finalizers.
func TestWatchedNamespaceEnds(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfNamespacesThatEnd](t)
	close(i.hold)
	full, empty, later := i.cluster.Namespace(t), i.cluster.Namespace(t), i.cluster.Namespace(t)
	watched := []string{"--watch-namespace", full, "--watch-namespace", empty, "--watch-namespace", later, "--leader-elect"}
	if stream := i.apply(watched...); strings.Contains(stream, "- "+roleFinalizer) {
		t.Error("the manifests have the finalizer, so that an apply would take it away")
	}
	stop := i.start(watched...)
	i.createWithoutFinalizer(later, "first")
	i.waitForRole(later, roleFinalizer)
	i.cluster.Kubectl(t, "", "delete", i.robots.String(), "first", "--namespace", later)
	i.waitForRole(later)

	for range 2 {
		i.createWithoutFinalizer(full, "a")
		i.createWithoutFinalizer(full, "b")
		i.waitForFinalizers(i.robots.String(), full, "b", i.cleanup)
		i.waitForRole(full, roleFinalizer)
		i.apply(watched...) // an apply keeps the finalizer
		i.waitForRole(full, roleFinalizer)
		i.cluster.Kubectl(t, "", "delete", "namespace", full, empty, "--timeout=5m")
		i.createNamespace(full)
		i.createNamespace(empty)
		i.apply(watched...)
	}

	// While the program is down, a namespace without objects ends, and a namespace with objects waits for the program.
	i.createWithoutFinalizer(later, "second")
	i.waitForFinalizers(i.robots.String(), later, "second", i.cleanup)
	stop()
	i.cluster.Kubectl(t, "", "delete", "namespace", empty, "--timeout=5m")
	i.cluster.Kubectl(t, "", "delete", "namespace", later, "--wait=false")
	stop = i.start(watched...)
	i.cluster.Kubectl(t, "", "wait", "--for=delete", "namespace/"+later, "--timeout=5m")
	if log := stop(); strings.Contains(log, "not retained as they should be") || strings.Contains(log, "is being deleted, and") {
		t.Errorf("the log is\n%s", log)
	}
}

type groupOfRolesThatGo struct{}

func (groupOfRolesThatGo) Group() string { return "going-roles.example.com" }

// The Role of a namespace that lives is deleted, as by helm uninstall or by another list of namespaces. It stays until the last
// object has lost its finalizer. The command uninstall releases it.
func TestRoleThatIsDeletedWhileItsNamespaceLives(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfRolesThatGo](t)
	close(i.hold)
	one, other := i.cluster.Namespace(t), i.cluster.Namespace(t)
	watched := []string{"--watch-namespace", one, "--watch-namespace", other}
	i.apply(append(watched, "--replicas=1")...)
	stop := i.start(watched...)
	for _, namespace := range []string{one, other} {
		i.createWithoutFinalizer(namespace, "a")
		i.waitForFinalizers(i.robots.String(), namespace, "a", i.cleanup)
	}
	i.cluster.Kubectl(t, "", "delete", "role,rolebinding", i.role(), "--namespace", one, "--wait=false")
	// The permissions are still there.
	i.createWithoutFinalizer(one, "b")
	i.waitForFinalizers(i.robots.String(), one, "b", i.cleanup)
	i.cluster.Kubectl(t, "", "delete", i.robots.String(), "--all", "--namespace", one, "--timeout=1m")
	i.cluster.Kubectl(t, "", "wait", "--for=delete", "role/"+i.role(), "rolebinding/"+i.role(), "--namespace", one, "--timeout=1m")
	i.apply(append(watched, "--replicas=1")...)
	i.createWithoutFinalizer(one, "c")
	i.waitForFinalizers(i.robots.String(), one, "c", i.cleanup)
	stop()

	// The program does not watch one any more, and its Role there is deleted, as the command in the manifests does.
	fewer := []string{"--watch-namespace", other}
	stop = i.start(fewer...)
	i.cluster.Kubectl(t, "", "delete", "role,rolebinding", i.role(), "--namespace", one, "--wait=false")
	i.createWithoutFinalizer(other, "d")
	i.waitForFinalizers(i.robots.String(), other, "d", i.cleanup)
	i.waitForRole(one, roleFinalizer)
	i.waitUntilReady(1)

	// The command uninstall leaves nothing.
	var status int
	var stdout, stderr string
	yaretest.Eventually(t, func() error {
		status, stdout, stderr = i.call(append([]string{"uninstall", "--delete-objects", "--remove-finalizers"}, fewer...)...)
		if status != 0 {
			return fmt.Errorf("status %d, %s\n%s", status, stderr, stdout)
		}
		return nil
	})
	for _, namespace := range []string{one, other} {
		i.checkExist(false, [3]string{"role", namespace, i.role()}, [3]string{"rolebinding", namespace, i.role()})
		i.cluster.Kubectl(t, "", "delete", "namespace", namespace, "--timeout=5m")
	}
	if log := stop(); !strings.Contains(log, "does not watch the namespace any more") || !strings.Contains(log, "uninstall --remove-finalizers") {
		t.Errorf("the log is\n%s", log)
	}
}

type groupOfHelm struct{}

func (groupOfHelm) Group() string { return "helm-namespaces.example.com" }

// helm uninstall deletes the Role of a namespace with objects. The program that is installed again cleans them up, and the namespace
// ends.
func TestReinstallationWhileRolesAreBeingDeleted(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfHelm](t)
	close(i.hold)
	namespace := i.cluster.Namespace(t)
	watched := []string{"--watch-namespace", namespace}
	i.apply(watched...)
	stop := i.start(watched...)
	i.createWithoutFinalizer(namespace, "a")
	i.waitForFinalizers(i.robots.String(), namespace, "a", i.cleanup)
	for _, args := range [][]string{ // the order of Helm
		{"deployment,rolebinding,role,serviceaccount", "--namespace", i.in}, {"rolebinding,role", "--namespace", namespace}, {"clusterrolebinding,clusterrole"},
	} {
		i.cluster.Kubectl(t, "", append([]string{"delete", "--wait=false", "-l", "manifests.yare.dev/namespace=" + i.in}, args...)...)
	}
	stop()
	i.waitForRole(namespace, roleFinalizer)
	_, stream, _ := i.call(append([]string{"manifests", "--image", "example.com/robots:v1"}, watched...)...)
	i.cluster.Kubectl(t, stream, "apply", "--server-side", "-f", "-") // which warns of the roles that are being deleted
	stop = i.start(watched...)
	i.cluster.Kubectl(t, "", "delete", "namespace", namespace, "--timeout=5m")
	stop()
}
