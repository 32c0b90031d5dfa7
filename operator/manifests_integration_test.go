package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// robotSpec is the spec of a kind in a group of its own for each test, because the tests remove
// definitions from the control plane that they share.
type robotSpec[G interface{ Group() string }] struct {
	Arms int `json:"arms,omitempty"`
}

func (robotSpec[G]) Definition() kube.Definition {
	var g G
	return kube.Definition{Group: g.Group(), Version: "v1", Kind: "Robot"}
}

// installation is a program with robots, and where a test installs it.
type installation struct {
	t        *testing.T
	cluster  *yaretest.Cluster
	client   *kube.Client
	program  operator.Program
	robots   wire.Resource
	name, in string // the name of the objects and their namespace
	cleanup  string // the finalizer of the program
	hold     chan struct{}
}

// newInstallation returns an installation of a program whose cleanups wait until hold is closed.
func newInstallation[G interface{ Group() string }](t *testing.T) *installation {
	t.Helper()
	cluster := yaretest.Shared(t)
	var g G
	i := &installation{
		t: t, cluster: cluster, client: cluster.Client(t), name: strings.ReplaceAll(g.Group(), ".", "-"),
		cleanup: g.Group() + "/cleanup", hold: make(chan struct{}),
	}
	i.in = i.name + "-system"
	i.program = operator.Program{Parts: func() ([]operator.Part, error) {
		return []operator.Part{controller.New(
			func(context.Context, *kube.CustomResource[robotSpec[G], kube.None], *kube.Client) (controller.Action, error) {
				return controller.Done(), nil
			}).Finalizer(i.cleanup, func(context.Context, *kube.CustomResource[robotSpec[G], kube.None], *kube.Client) (controller.Cleanup, error) {
			select {
			case <-i.hold:
				return controller.CleanupDone(), nil
			default:
				return controller.Cleanup{}, errors.New("the cleanup is held")
			}
		})}, nil
	}}
	var err error
	if i.robots, err = kube.ResourceOf[kube.CustomResource[robotSpec[G], kube.None]](); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the context of t has ended
		meta := metav1.ObjectMeta{Name: i.name + "." + i.in}
		for _, o := range []kube.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta}, &rbacv1.ClusterRoleBinding{ObjectMeta: meta}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.in}},
		} {
			if err := kube.IgnoreNotFound(i.client.Delete(context.Background(), o)); err != nil {
				t.Logf("left behind: %v", err)
			}
		}
		if err := kube.IgnoreNotFound(kube.Metadata(i.client, definitionResource(), "").Delete(context.Background(), i.robots.String())); err != nil {
			t.Logf("left behind: %v", err)
		}
	})
	return i
}

// call runs a command of the program, and returns its status and output.
func (i *installation) call(args ...string) (status int, stdout, stderr string) {
	i.t.Helper()
	args = append(args, "--kubeconfig", i.cluster.Kubeconfig())
	if args[0] == "uninstall" {
		args = append(args, "--yes")
	}
	return operator.CallProgram(i.t.Context(), i.name, i.program, args...)
}

// apply applies what the command manifests prints, and returns the stream. kubectl must not warn.
func (i *installation) apply(args ...string) string {
	i.t.Helper()
	status, stream, stderr := i.call(append([]string{"manifests", "--image", "example.com/robots:v1", "--listen", ":8080"}, args...)...)
	if status != 0 {
		i.t.Fatalf("status %d, %s", status, stderr)
	}
	_, said, err := i.cluster.TryKubectl(i.t, stream, "apply", "--server-side", "-f", "-")
	if err != nil || said != "" {
		i.t.Fatalf("kubectl: %v\n%s\n%s", err, said, stream)
	}
	return stream
}

// waitUntilReady waits until n replicas are ready.
func (i *installation) waitUntilReady(n int32) *appsv1.Deployment {
	i.t.Helper()
	return yaretest.WaitFor(i.t, kube.Namespaced[appsv1.Deployment](i.client, i.in), i.name, func(d *appsv1.Deployment) error {
		if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != n || d.Status.Replicas != n {
			return fmt.Errorf("%d of %d replicas are ready, not %d", d.Status.ReadyReplicas, d.Status.Replicas, n)
		}
		return nil
	})
}

// create creates a robot.
func (i *installation) create(namespace, name string) {
	i.t.Helper()
	text := fmt.Sprintf("apiVersion: %s\nkind: Robot\nmetadata: {namespace: %s, name: %s, finalizers: [%s]}\nspec: {}\n", i.robots.GroupVersion(), namespace, name, i.cleanup)
	yaretest.Eventually(i.t, func() error { // the server takes its time with a new definition
		_, stderr, err := i.cluster.TryKubectl(i.t, text, "apply", "--server-side", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %s", err, stderr)
		}
		return nil
	})
}

// exists reports whether an object exists.
func (i *installation) exists(kind, namespace, name string) bool {
	i.t.Helper()
	r, err := i.resourceNamed(kind)
	if err != nil {
		i.t.Fatal(err)
	}
	_, err = kube.Metadata(i.client, r, namespace).Get(i.t.Context(), name)
	if kube.IgnoreNotFound(err) != nil {
		i.t.Fatalf("get %s %s/%s: %v", kind, namespace, name, err)
	}
	return err == nil
}

// resourceNamed returns the resource of a name that kubectl knows too, or of the kind of the program. A test asks about many
// objects, and each kubectl would be a process.
func (i *installation) resourceNamed(kind string) (wire.Resource, error) {
	switch kind {
	case i.robots.String():
		return i.robots, nil
	case "clusterrole":
		return kube.ResourceOf[rbacv1.ClusterRole]()
	case "clusterrolebinding":
		return kube.ResourceOf[rbacv1.ClusterRoleBinding]()
	case "configmap":
		return kube.ResourceOf[corev1.ConfigMap]()
	case "crd":
		return definitionResource(), nil
	case "deployment":
		return kube.ResourceOf[appsv1.Deployment]()
	case "mutatingwebhookconfiguration":
		return kube.ResourceOf[admissionv1.MutatingWebhookConfiguration]()
	case "namespace":
		return kube.ResourceOf[corev1.Namespace]()
	case "networkpolicy":
		return kube.ResourceOf[networkingv1.NetworkPolicy]()
	case "pdb":
		return kube.ResourceOf[policyv1.PodDisruptionBudget]()
	case "role":
		return kube.ResourceOf[rbacv1.Role]()
	case "rolebinding":
		return kube.ResourceOf[rbacv1.RoleBinding]()
	case "secret":
		return kube.ResourceOf[corev1.Secret]()
	case "service":
		return kube.ResourceOf[corev1.Service]()
	case "serviceaccount":
		return kube.ResourceOf[corev1.ServiceAccount]()
	case "validatingwebhookconfiguration":
		return kube.ResourceOf[admissionv1.ValidatingWebhookConfiguration]()
	}
	return wire.Resource{}, fmt.Errorf("resourceNamed does not know the kind %q: add it", kind)
}

// checkExist fails the test unless objects, named as kind or kind/namespace/name, exist or not.
func (i *installation) checkExist(want bool, objects ...[3]string) {
	i.t.Helper()
	for _, o := range objects {
		if i.exists(o[0], o[1], o[2]) != want {
			i.t.Errorf("that %v exists is not %t", o, want)
		}
	}
}

// objects returns what is installed besides the definition and the namespace.
func (i *installation) objects() [][3]string {
	return [][3]string{
		{"deployment", i.in, i.name}, {"service", i.in, i.name}, {"serviceaccount", i.in, i.name}, {"pdb", i.in, i.name},
		{"clusterrole", "", i.name + "." + i.in}, {"clusterrolebinding", "", i.name + "." + i.in},
	}
}

type groupOfUpgrades struct{}

func (groupOfUpgrades) Group() string { return "upgrades.example.com" }

// A server takes the manifests at the first try and again, its Pods fulfil the restricted Pod security
// standard, and the command in the manifests deletes what an upgrade does not print any more, and
// nothing else.
func TestManifestsOnAServer(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfUpgrades](t)
	first := i.apply("--network-policy")
	namespace, err := kube.Get[corev1.Namespace](t.Context(), i.client, "", i.in)
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("the namespace enforces nothing: %v, %v", namespace.Labels, err)
	}
	installed := i.waitUntilReady(2)
	if again := i.apply("--network-policy"); again != first {
		t.Error("the second stream differs from the first")
	}
	if now := i.waitUntilReady(2); now.Generation != installed.Generation {
		t.Error("the second apply has changed the Deployment")
	}
	// The apply of a stream is refused. The command in the stream deletes nothing that the stream prints. It deleted the
	// running Deployment, because that had the label of another stream.
	_, refused, _ := i.call("manifests", "--image=example.com/robots:v2", "--listen=:8080", "--network-policy")
	runPrune(t, i.cluster, refused)
	i.checkExist(true, append(i.objects(), [3]string{"networkpolicy", i.in, i.name})...)
	for _, level := range []string{"view", "edit", "admin"} { // Kubernetes adds the rules of the roles for users to its own
		yaretest.Eventually(t, func() error {
			role, err := kube.Get[rbacv1.ClusterRole](t.Context(), i.client, "", level)
			if err == nil && !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, i.robots.Group) }) {
				err = errors.New(level + " does not include the kind")
			}
			return err
		})
	}
	i.create("default", "upgraded")
	stream := i.apply("--replicas=1", "--memory-limit=256Mi")
	i.waitUntilReady(1)
	runPrune(t, i.cluster, stream)
	_, err = kube.Get[policyv1.PodDisruptionBudget](t.Context(), i.client, i.in, i.name)
	if !kube.IsNotFound(err) {
		t.Errorf("the PodDisruptionBudget is still there: %v", err)
	}
	_, err = kube.Get[networkingv1.NetworkPolicy](t.Context(), i.client, i.in, i.name)
	if !kube.IsNotFound(err) {
		t.Errorf("the NetworkPolicy is still there: %v", err)
	}
	i.checkExist(true, [3]string{"crd", "", i.robots.String()}, [3]string{"namespace", "", i.in}, [3]string{i.robots.String(), "default", "upgraded"},
		[3]string{"deployment", i.in, i.name}, [3]string{"service", i.in, i.name}, [3]string{"serviceaccount", i.in, i.name}, [3]string{"clusterrole", "", i.name + "." + i.in},
		[3]string{"clusterrole", "", i.robots.String() + "-edit"})
	i.waitUntilReady(1)
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "upgraded", "--namespace=default", "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
}

// runPrune runs the kubectl command of a stream.
func runPrune(t *testing.T, cluster *yaretest.Cluster, stream string) {
	t.Helper()
	for line := range strings.Lines(stream) {
		if command, ok := strings.CutPrefix(line, "# kubectl "); ok {
			parts := strings.Split(strings.TrimSpace(command), "'") // the second part is quoted
			cluster.Kubectl(t, "", slices.Concat(strings.Fields(parts[0]), parts[1:2], strings.Fields(parts[2]))...)
			return
		}
	}
	t.Fatal("the stream names no command that prunes")
}

type groupOfNamespaces struct{}

func (groupOfNamespaces) Group() string { return "narrow.example.com" }

// With --watch-namespace there are Roles in the watched namespaces. The ClusterRole of a program with a finalizer is about these
// Roles alone.
func TestManifestsOfWatchedNamespaces(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfNamespaces](t)
	watched := i.cluster.Namespace(t)
	i.apply("--watch-namespace", watched)
	role, err := kube.Get[rbacv1.Role](t.Context(), i.client, watched, i.name+"."+i.in)
	if err != nil || len(role.Rules) == 0 {
		t.Errorf("the Role is %v, %v", role, err)
	}
	wide, err := kube.Get[rbacv1.ClusterRole](t.Context(), i.client, "", i.name+"."+i.in)
	if err != nil || len(wide.Rules) != 1 || !slices.Equal(wide.Rules[0].ResourceNames, []string{i.name + "." + i.in}) || !slices.Equal(wide.Rules[0].Resources, []string{"roles", "rolebindings"}) {
		t.Errorf("the ClusterRole is %v, %v", wide, err)
	}
	account := "system:serviceaccount:" + i.in + ":" + i.name
	yaretest.Eventually(t, func() error {
		stdout, _, _ := i.cluster.TryKubectl(t, "", "auth", "can-i", "watch", i.robots.String(), "--namespace", watched, "--as", account)
		if strings.TrimSpace(stdout) != "yes" {
			return errors.New("the account may not watch in " + watched)
		}
		return nil
	})
	if stdout, _, _ := i.cluster.TryKubectl(t, "", "auth", "can-i", "watch", i.robots.String(), "--namespace", "default", "--as", account); strings.TrimSpace(stdout) != "no" {
		t.Errorf("the account may watch in another namespace: %s", stdout)
	}
}

type groupOfVersions struct{}

func (groupOfVersions) Group() string { return "versions.example.com" }

// The server refuses a definition without a version in which objects may be stored. With --check
// nothing is printed then.
func TestManifestsWithoutAStoredVersion(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfVersions](t)
	old := strings.ReplaceAll(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: GROUP
  names: {kind: Robot, listKind: RobotList, plural: robots, singular: robot}
  scope: Namespaced
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, i.robots), "GROUP", i.robots.Group)
	if status, stdout, stderr := i.call("manifests", "--image=i:1", "--check"); status != 0 || stdout == "" {
		t.Errorf("without a definition: status %d, %s", status, stderr)
	}
	i.cluster.Kubectl(t, old, "apply", "--server-side", "-f", "-")
	i.cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+i.robots.String())
	status, stdout, stderr := i.call("manifests", "--image=i:1", "--check")
	if status != 1 || stdout != "" || !strings.Contains(stderr, i.robots.String()) || !strings.Contains(stderr, "v1alpha1") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	if strings.Contains(stderr, "plural") {
		t.Errorf("the plural is the same: %s", stderr)
	}
	_, stream, _ := i.call("manifests", "--image=i:1")
	if _, stderr, err := i.cluster.TryKubectl(t, stream, "apply", "--server-side", "-f", "-"); err == nil || !strings.Contains(stderr, "storedVersions") {
		t.Errorf("the server takes the definition: %v, %s", err, stderr)
	}
}

type groupOfPlurals struct{}

func (groupOfPlurals) Group() string { return "plurals.example.com" }

// The server takes a definition of a kind that it has under another plural, and never serves the kind. With --check
// nothing is printed then.
func TestManifestsWithAnotherPlural(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfPlurals](t)
	i.cluster.Kubectl(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: roboter.%[1]s}
spec:
  group: %[1]s
  names: {kind: Robot, listKind: RobotList, plural: roboter, singular: robot}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, i.robots.Group), "apply", "--server-side", "-f", "-")
	i.cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/roboter."+i.robots.Group)
	status, stdout, stderr := i.call("manifests", "--image=i:1", "--check")
	if status != 1 || stdout != "" || !strings.Contains(stderr, `set Plural to "roboter"`) {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
}

// keepsNamespace reports whether the output of uninstall has the command that deletes a namespace, and no
// line about its deletion.
func keepsNamespace(stdout, namespace string) bool {
	return strings.Contains(stdout, "\n  kubectl delete namespace "+namespace+"\n") && !strings.Contains(stdout, "delete namespaces ") &&
		!strings.Contains(stdout, "deleted namespaces ")
}

type groupOfUninstalls struct{}

func (groupOfUninstalls) Group() string { return "uninstalls.example.com" }

// uninstall refuses while objects exist, stops if nobody can clean up, waits for cleanups, and leaves
// nothing behind.
func TestUninstall(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfUninstalls](t)
	one, two := i.cluster.Namespace(t), i.cluster.Namespace(t)
	i.apply()
	i.waitUntilReady(2)
	i.create(one, "a")
	i.create(one, "b")
	i.create(two, "c")
	definition, userRole := [3]string{"crd", "", i.robots.String()}, [3]string{"clusterrole", "", i.robots.String() + "-view"}

	status, _, stderr := i.call("uninstall")
	if status != 1 || !strings.Contains(stderr, "nothing was removed") || !strings.Contains(stderr, "2 in namespace "+one) || !strings.Contains(stderr, "1 in namespace "+two) {
		t.Errorf("with objects: status %d, %s", status, stderr)
	}
	status, _, stderr = i.call("uninstall", "--namespace", "mistyped")
	if want := "mistyped/" + i.name + " does not exist"; status != 1 || !strings.Contains(stderr, want) || strings.Contains(stderr, "--delete-objects") {
		t.Errorf("a namespace without the program: status %d, %s", status, stderr)
	}
	status, stdout, stderr := i.call("uninstall", "--delete-objects", "--dry-run")
	if status != 0 || !strings.Contains(stdout, "would delete deployments.apps "+i.in+"/"+i.name) || !keepsNamespace(stdout, i.in) ||
		!strings.Contains(stdout, "would delete customresourcedefinitions.apiextensions.k8s.io "+i.robots.String()) {
		t.Errorf("a dry run: status %d, %s\n%s", status, stderr, stdout)
	}
	i.cluster.Kubectl(t, "", "scale", "deployment", i.name, "--namespace", i.in, "--replicas=0")
	i.waitUntilReady(0)
	status, _, stderr = i.call("uninstall", "--delete-objects")
	if status != 1 || !strings.Contains(stderr, "no replica") || !strings.Contains(stderr, "--abandon-cleanup") {
		t.Errorf("without a replica: status %d, %s", status, stderr)
	}
	i.checkExist(true, append(i.objects(), definition, [3]string{i.robots.String(), one, "a"}, [3]string{"namespace", "", i.in})...)
	if t.Failed() {
		t.FailNow()
	}

	i.cluster.Kubectl(t, "", "scale", "deployment", i.name, "--namespace", i.in, "--replicas=2")
	i.waitUntilReady(2)
	parts, err := i.program.Parts()
	if err != nil {
		t.Fatal(err)
	}
	yaretest.RunParts(t, i.cluster, parts...) // the Pods are simulated
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, stdout, stderr = i.call("uninstall", "--delete-objects")
	}()
	yaretest.Eventually(t, func() error {
		if object := i.cluster.Kubectl(t, "", "get", i.robots.String(), "a", "--namespace", one, "-o", "jsonpath={.metadata.deletionTimestamp}"); object == "" {
			return errors.New("the object is not being deleted")
		}
		return nil
	})
	i.checkExist(true, append(i.objects(), definition, userRole)...)
	close(i.hold)
	<-ended
	if status != 0 || !strings.Contains(stdout, "waiting for the end of 3 objects") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(false, append(i.objects(), definition, userRole)...)
	// The command that uninstall prints deletes the namespace. Nothing but this command does.
	status, stdout, stderr = i.call("uninstall")
	if status != 0 || !keepsNamespace(stdout, i.in) || strings.Contains(stdout, "deleted") {
		t.Errorf("once more: status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(true, [3]string{"namespace", "", i.in})
	_, command, _ := strings.Cut(stdout, "\n  kubectl ")
	i.cluster.Kubectl(t, "", strings.Fields(command)...)
	if status, stdout, stderr := i.call("uninstall"); status != 0 || strings.Contains(stdout, "deleted") || strings.Contains(stdout, "kept") {
		t.Errorf("without the namespace: status %d, %s\n%s", status, stderr, stdout)
	}
}

type groupOfAbandonment struct{}

func (groupOfAbandonment) Group() string { return "abandoned.example.com" }

// --abandon-cleanup removes the finalizers of the program, and no other finalizers.
func TestUninstallThatAbandonsCleanups(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfAbandonment](t)
	namespace := i.cluster.Namespace(t)
	i.apply("--replicas=1")
	i.waitUntilReady(1)
	i.create(namespace, "a")
	i.create(namespace, "b")
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "b", "--namespace", namespace, "--type=json",
		"--patch", `[{"op":"add","path":"/metadata/finalizers/-","value":"other.example.com/keep"}]`)
	i.cluster.Kubectl(t, "", "scale", "deployment", i.name, "--namespace", i.in, "--replicas=0")
	i.waitUntilReady(0)
	if status, _, stderr := i.call("uninstall", "--abandon-cleanup"); status != 1 || !strings.Contains(stderr, "--delete-objects") {
		t.Errorf("alone: status %d, %s", status, stderr)
	}
	var status int
	var stdout, stderr string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		status, stdout, stderr = i.call("uninstall", "--delete-objects", "--abandon-cleanup")
	}()
	yaretest.Eventually(t, func() error {
		left := i.cluster.Kubectl(t, "", "get", i.robots.String(), "--namespace", namespace, "-o", "jsonpath={.items[*].metadata.finalizers}")
		if left != `["other.example.com/keep"]` {
			return errors.New("the finalizers are " + left)
		}
		return nil
	})
	i.checkExist(true, [3]string{"deployment", i.in, i.name})
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "b", "--namespace", namespace, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	<-ended
	if status != 0 || !strings.Contains(stdout, "abandoned the cleanup of "+i.robots.String()+" "+namespace+"/a") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(false, [3]string{"deployment", i.in, i.name}, [3]string{"crd", "", i.robots.String()})
}

type groupOfKept struct{}

func (groupOfKept) Group() string { return "kept.example.com" }

// uninstall keeps the objects outside of the watched namespaces, the definition that they or another
// installation need, and each namespace with what others have in it.
func TestUninstallKeepsWhatOthersNeed(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfKept](t)
	watched, other := i.cluster.Namespace(t), i.cluster.Namespace(t)
	i.apply("--replicas=1", "--watch-namespace", watched)
	i.waitUntilReady(1)
	second := i.cluster.Namespace(t) // it exists before the second installation
	i.apply("--replicas=1", "--watch-namespace", other, "--namespace", second, "--name-prefix", i.name+"-b")
	i.create(other, "theirs")
	i.cluster.Kubectl(t, "", "create", "configmap", "mine", "--namespace", i.in)

	status, stdout, stderr := i.call("uninstall")
	if status != 0 || !strings.Contains(stdout, "kept customresourcedefinitions.apiextensions.k8s.io "+i.robots.String()+": the program is also installed as deployments.apps "+second+"/") ||
		!keepsNamespace(stdout, i.in) {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(true, [3]string{i.robots.String(), other, "theirs"}, [3]string{"crd", "", i.robots.String()}, [3]string{"configmap", i.in, "mine"},
		[3]string{"deployment", second, i.name + "-b"}, [3]string{"role", other, i.name + "-b." + second})
	i.checkExist(false, [3]string{"deployment", i.in, i.name}, [3]string{"role", watched, i.name + "." + i.in})

	// Without the Deployment nobody knows which namespaces the program watched.
	if status, _, stderr = i.call("uninstall"); status != 1 || !strings.Contains(stderr, "1 in namespace "+other) {
		t.Errorf("without a Deployment: status %d, %s", status, stderr)
	}
	if status, stdout, stderr = i.call("uninstall", "--watch-namespace", watched); status != 0 || !keepsNamespace(stdout, i.in) {
		t.Errorf("with the namespace of the first one: status %d, %s\n%s", status, stderr, stdout)
	}
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "theirs", "--namespace", other, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	status, stdout, stderr = i.call("uninstall", "--namespace", second, "--name-prefix", i.name+"-b", "--delete-objects")
	if status != 0 || !keepsNamespace(stdout, second) {
		t.Errorf("the second installation: status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(false, [3]string{"deployment", second, i.name + "-b"}, [3]string{"crd", "", i.robots.String()})
	i.checkExist(true, [3]string{"namespace", "", second}, [3]string{"configmap", i.in, "mine"})
}

// mayList reports whether the account of an installation may list robots everywhere.
func (i *installation) mayList(namespace string) bool {
	i.t.Helper()
	stdout, _, _ := i.cluster.TryKubectl(i.t, "", "auth", "can-i", "list", i.robots.String(), "--all-namespaces", "--as", "system:serviceaccount:"+namespace+":"+i.name)
	return strings.TrimSpace(stdout) == "yes"
}

type groupOfTwo struct{}

func (groupOfTwo) Group() string { return "two.example.com" }

// Two installations with the default name in two namespaces have permissions of their own. The end of one of them
// leaves those of the other alone.
func TestTwoInstallationsOfOneName(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfTwo](t)
	one, two := i.cluster.Namespace(t), i.cluster.Namespace(t)
	i.apply("--namespace", one)
	i.apply("--namespace", two)
	yaretest.Eventually(t, func() error {
		if !i.mayList(one) || !i.mayList(two) {
			return fmt.Errorf("the accounts may list: %t and %t", i.mayList(one), i.mayList(two))
		}
		return nil
	})
	// The objects of the other one are not taken over, and its bindings are not removed.
	giveTo := func(kind, owner string) {
		i.cluster.Kubectl(t, "", "label", kind, i.name+"."+two, "--overwrite", "manifests.yare.dev/namespace="+owner)
	}
	giveTo("clusterrole", one)
	status, stdout, stderr := i.call("manifests", "--image=i:1", "--namespace", two, "--check")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "clusterroles.rbac.authorization.k8s.io "+i.name+"."+two+" belongs to the installation "+i.name+" in the namespace "+one) {
		t.Errorf("an object of another installation: status %d, %s\n%s", status, stderr, stdout)
	}
	giveTo("clusterrole", two)
	giveTo("clusterrolebinding", one)
	if status, _, stderr = i.call("uninstall", "--namespace", one); status != 1 || !strings.Contains(stderr, "nothing was removed") || !strings.Contains(stderr, "another installation needs it") {
		t.Errorf("a binding of another installation: status %d, %s", status, stderr)
	}
	i.checkExist(true, [3]string{"deployment", one, i.name})
	giveTo("clusterrolebinding", two)

	// An object that both watch is no concern of the end of one of them. --delete-objects deleted it.
	i.create("default", "shared")
	for _, args := range [][]string{{"--dry-run"}, {"--delete-objects"}} {
		status, stdout, stderr = i.call(append([]string{"uninstall", "--namespace", two}, args...)...)
		if status != 0 || !strings.Contains(stdout, "kept customresourcedefinitions") || !strings.Contains(stdout, "leaves the objects that another installation watches") {
			t.Errorf("%q: status %d, %s\n%s", args, status, stderr, stdout)
		}
	}
	if at := i.cluster.Kubectl(t, "", "get", i.robots.String(), "shared", "--namespace=default", "-o", "jsonpath={.metadata.deletionTimestamp}"); at != "" {
		t.Errorf("the object is being deleted since %s", at)
	}
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "shared", "--namespace=default", "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	i.cluster.Kubectl(t, "", "delete", i.robots.String(), "shared", "--namespace=default")
	i.checkExist(false, [3]string{"deployment", two, i.name}, [3]string{"clusterrolebinding", "", i.name + "." + two})
	if !i.mayList(one) {
		t.Error("the other installation has lost its permissions")
	}
	if status, _, stderr = i.call("uninstall", "--namespace", one); status != 0 {
		t.Errorf("the other one: status %d, %s", status, stderr)
	}
	i.checkExist(false, [3]string{"clusterrole", "", i.name + "." + one}, [3]string{"crd", "", i.robots.String()})
}

type groupOfOlderNames struct{}

func (groupOfOlderNames) Group() string { return "older.example.com" }

// --check names the objects of the installation under an older name, and the command in the stream deletes them. It
// names the finalizers that the program does not know, refuses a change of the name, and prints nothing then.
func TestCheckOfAnInstallation(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfOlderNames](t)
	stream := i.apply("--replicas=1")
	// Other tests add and remove definitions, so that some resources may not be checked.
	if status, _, stderr := i.call("manifests", "--image=i:1", "--check"); status != 0 || strings.Contains(stderr, "finalizer") || strings.Contains(stderr, "older name") {
		t.Errorf("there is nothing to say: status %d, %s", status, stderr)
	}
	// An earlier version called the objects outside of the namespace by the name of the program alone.
	older := ""
	for document := range strings.SplitSeq(stream, "---\n") {
		if strings.Contains(document, "kind: ClusterRole") {
			older += "---\n" + strings.ReplaceAll(document, i.name+"."+i.in, i.name)
		}
	}
	older = strings.ReplaceAll(older, "manifests.yare.dev/object: ", "manifests.yare.dev/revision: a")
	i.cluster.Kubectl(t, older, "apply", "--server-side", "-f", "-")
	i.create("default", "checked")
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "checked", "--namespace=default", "--type=json",
		"--patch", `[{"op":"add","path":"/metadata/finalizers/-","value":"former.older.example.com/cleanup"}]`)
	status, stream, stderr := i.call("manifests", "--image=example.com/robots:v1", "--listen=:8080", "--replicas=1", "--check")
	for _, want := range []string{
		"clusterroles.rbac.authorization.k8s.io " + i.name + "\n", "clusterrolebindings.rbac.authorization.k8s.io " + i.name + "\n",
		"does not know the finalizer former.older.example.com/cleanup", i.robots.String() + ": 1 in namespace default",
	} {
		if status != 0 || !strings.Contains(stderr, want) {
			t.Errorf("status %d, without %q: %s", status, want, stderr)
		}
	}
	if strings.Contains(stderr, " "+i.cleanup) {
		t.Errorf("the program knows its finalizer: %s", stderr)
	}
	runPrune(t, i.cluster, stream)
	i.checkExist(false, [3]string{"clusterrole", "", i.name}, [3]string{"clusterrolebinding", "", i.name})
	i.checkExist(true, i.objects()[4:]...)

	renamed := i.program
	renamed.Name = "renamed"
	for _, args := range [][]string{{}, {"--namespace", i.in, "--name-prefix", i.name}} {
		status, stdout, stderr := operator.CallProgram(t.Context(), i.name, renamed,
			append([]string{"manifests", "--image=i:1", "--check", "--kubeconfig", i.cluster.Kubeconfig()}, args...)...)
		for _, want := range []string{`under the name "` + i.name + `", and not "renamed"`, "the field Name of operator.Program", "kubectl delete deployment --namespace " + i.in + " " + i.name} {
			if status != 1 || stdout != "" || !strings.Contains(stderr, want) {
				t.Errorf("%q: status %d, without %q: %s\n%s", args, status, want, stderr, stdout)
			}
		}
	}
	i.cluster.Kubectl(t, "", "patch", i.robots.String(), "checked", "--namespace=default", "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
}

type groupOfServices struct{}

func (groupOfServices) Group() string { return "services.example.com" }

// uninstall finds the finalizers of the program on objects of kinds that the program does not define, in all
// namespaces, and removes nothing then. It removes these finalizers on request, and those of nobody else, and also from
// its own Service, which it deletes.
func TestUninstallWithFinalizersOnOtherKinds(t *testing.T) {
	t.Parallel()
	i := newInstallation[groupOfServices](t)
	const cleanup, keep = "services.example.com/services", "others.example.com/keep"
	robotParts := i.program.Parts
	i.program.Parts = func() ([]operator.Part, error) {
		parts, err := robotParts()
		return append(parts, controller.New(func(context.Context, *corev1.Service, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}).Finalizer(cleanup, func(context.Context, *corev1.Service, *kube.Client) (controller.Cleanup, error) {
			return controller.CleanupDone(), nil
		})), err
	}
	watched, other := i.cluster.Namespace(t), i.cluster.Namespace(t)
	for _, isNarrow := range []bool{false, true} { // in all namespaces the program may change each Service
		args := []string{"manifests", "--image=i:1", "--check"}
		if isNarrow {
			args = append(args, "--watch-namespace", watched)
		}
		status, _, stderr := i.call(args...)
		if status != 0 || strings.Contains(stderr, "the roles allow writes in all namespaces, kube-system included") == isNarrow || strings.Contains(stderr, "patch services\n") == isNarrow {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	i.apply("--replicas=1", "--watch-namespace", watched)
	i.waitUntilReady(1)
	i.cluster.Kubectl(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {namespace: %s, name: shop, finalizers: [%s, %s]}\nspec: {ports: [{port: 80}]}\n", other, cleanup, keep), "apply", "-f", "-")
	i.cluster.Kubectl(t, "", "patch", "service", i.name, "--namespace", i.in, "--type=merge", "--patch", `{"metadata":{"finalizers":["`+cleanup+`"]}}`)

	for _, args := range [][]string{{"uninstall"}, {"uninstall", "--dry-run"}} {
		status, stdout, stderr := i.call(args...)
		for _, want := range []string{"nothing was removed", "services: 1 in namespace " + other, "services: 1 in namespace " + i.in, "--remove-finalizers"} {
			if status != 1 || !strings.Contains(stderr, want) {
				t.Errorf("%q: status %d, without %q: %s\n%s", args, status, want, stderr, stdout)
			}
		}
		if !strings.Contains(stdout, "https://127.0.0.1:") {
			t.Errorf("the output does not name the server: %s", stdout)
		}
	}
	i.checkExist(true, i.objects()[0], i.objects()[1], i.objects()[2])
	// Without a terminal nobody can be asked.
	status, stdout, stderr := operator.CallProgram(t.Context(), i.name, i.program, "uninstall", "--remove-finalizers", "--kubeconfig", i.cluster.Kubeconfig())
	if status != 1 || !strings.Contains(stderr, "nothing was removed") || !strings.Contains(stderr, "--yes") {
		t.Errorf("without a terminal: status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(true, i.objects()[0])

	status, stdout, stderr = i.call("uninstall", "--remove-finalizers")
	if status != 0 || !strings.Contains(stdout, "abandoned the cleanup of services "+other+"/shop") {
		t.Errorf("status %d, %s\n%s", status, stderr, stdout)
	}
	i.checkExist(false, i.objects()...)
	if left := i.cluster.Kubectl(t, "", "get", "service", "shop", "--namespace", other, "-o", "jsonpath={.metadata.finalizers}"); left != `["`+keep+`"]` {
		t.Errorf("the finalizers are %s", left)
	}
	i.cluster.Kubectl(t, "", "patch", "service", "shop", "--namespace", other, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
}
