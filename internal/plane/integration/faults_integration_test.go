package integration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// components holds all components, in an order in which each can be ended by its process ID:
// the components that depend on the API server are restarted after it, so it is last.
func components() []string {
	return []string{yaretest.Kubelet, yaretest.Scheduler, yaretest.ControllerManager, yaretest.Etcd, yaretest.APIServer}
}

// patient returns a context for what is done to a component of the plane.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// breakable is a control plane of one test's own, and what the test made in it at the beginning.
type breakable struct {
	*plane.Plane
	client *kube.Client
	kept   *corev1.ConfigMap
	pod    *corev1.Pod
	works  int // how often it was made to work
}

const breakableNodes = 3

// breakableNamespace exists from the start, and ends with the plane.
const breakableNamespace = metav1.NamespaceDefault

// One plane is broken in every way, one after the other, and each time goes on with all
// that it had.
func TestFaults(t *testing.T) {
	t.Parallel()
	binary := findBinary(t)
	p, err := plane.Start(patient(t), plane.Options{Binary: binary, Nodes: breakableNodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	t.Logf("ready after %s", p.StartDuration())
	b := &breakable{Plane: p, client: clientOf(t, p.Kubeconfig())}
	b.kept = create(t, b.configMaps(), &corev1.ConfigMap{ObjectMeta: named("kept"), Data: map[string]string{"a": "b"}})
	create(t, b.pods(), newPod("kept"))
	b.pod = waitForPod(t, b.pods(), "kept", runs(true))

	t.Run("private", b.isPrivate)
	t.Run("nodes", b.hasItsNodes)
	t.Run("side by side", b.standsBesideAnother)
	for _, component := range components() {
		t.Run("ended by a stranger: "+component, func(t *testing.T) { b.endedByAStranger(t, component) })
	}
	for _, component := range components() {
		t.Run("killed: "+component, func(t *testing.T) { b.killed(t, component) })
	}
	t.Run("scheduler stopped", b.schedulerStopped)
	t.Run("kubelet paused", b.kubeletPaused)
	t.Run("API server paused", b.apiServerPaused)
	t.Run("history compacted", b.historyCompacted)
	t.Run("closed with a part paused", b.closedWhilePaused)
}

func (b *breakable) configMaps() kube.API[corev1.ConfigMap] {
	return kube.Namespaced[corev1.ConfigMap](b.client, breakableNamespace)
}

func (b *breakable) pods() kube.API[corev1.Pod] {
	return kube.Namespaced[corev1.Pod](b.client, breakableNamespace)
}

// goesOn waits until every component does its work: a Deployment becomes available and
// takes its Pods along when it is deleted. What was there before is still there.
func (b *breakable) goesOn(t *testing.T) {
	t.Helper()
	began := time.Now()
	deployments := kube.Namespaced[appsv1.Deployment](b.client, breakableNamespace)
	b.works++
	name := fmt.Sprintf("works-%d", b.works)
	yaretest.Eventually(t, func() error {
		_, err := deployments.Create(t.Context(), newDeployment(name, 2))
		if kube.IsAlreadyExists(err) { // The answer to the first try was lost.
			return nil
		}
		return err
	})
	yaretest.WaitFor(t, deployments, name, rolledOut(2))
	b.addressesAreUnique(t)
	t.Logf("a Deployment was available after %s", time.Since(began).Round(time.Millisecond))
	yaretest.Eventually(t, func() error {
		if err := deployments.Delete(t.Context(), name, kube.Propagation(metav1.DeletePropagationForeground)); err != nil && !kube.IsNotFound(err) {
			return err
		}
		return nil
	})
	yaretest.Eventually(t, func() error {
		left, err := b.pods().List(t.Context(), kube.Label("app", name))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d Pods are left", len(left))
		}
		return err
	})
	kept := get(t, b.configMaps(), "kept")
	if kept.UID != b.kept.UID || kept.ResourceVersion != b.kept.ResourceVersion || kept.Data["a"] != "b" {
		t.Errorf("the ConfigMap that was there is now %+v", kept)
	}
	pod := get(t, b.pods(), "kept")
	if err := runs(true)(pod); err != nil || pod.UID != b.pod.UID || pod.Status.PodIP != b.pod.Status.PodIP || pod.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the Pod that was there: %v, %+v", err, pod.Status)
	}
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
}

// addressesAreUnique fails t if two Pods have one address, as they would if a node forgot
// which it has given away.
func (b *breakable) addressesAreUnique(t *testing.T) {
	t.Helper()
	all, err := kube.Everywhere[corev1.Pod](b.client).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for _, p := range all {
		if other := of[p.Status.PodIP]; other != "" && p.Status.PodIP != "" {
			t.Errorf("%s and %s have the address %s", other, p.Name, p.Status.PodIP)
		}
		of[p.Status.PodIP] = p.Name
	}
}

// Nobody else can read what is in the plane's folder, or has its kubeconfig.
func (b *breakable) isPrivate(t *testing.T) {
	info, err := os.Stat(b.Dir())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the mode of the folder is %v, %v", info.Mode(), err)
	}
	if info, err = os.Stat(b.Kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the kubeconfig is %v, %v", info.Mode(), err)
	}
	// Keys would be safe in the folder; they are safe outside of it too.
	err = filepath.WalkDir(b.Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".key") && !strings.HasSuffix(path, ".kubeconfig") {
			return nil // What etcd has renamed meanwhile is no key.
		}
		if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", path, info, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if os.Getuid() != 0 {
		return // Only root can be somebody else.
	}
	for _, path := range []string{b.Dir(), b.Kubeconfig(), filepath.Join(b.Dir(), "ca.crt")} {
		if listedByNobody(t, path) {
			t.Errorf("another user sees %s", path)
		}
	}
}

func (b *breakable) hasItsNodes(t *testing.T) {
	nodes, err := kube.Everywhere[corev1.Node](b.client).List(t.Context())
	if err != nil || len(nodes) != breakableNodes {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	for _, n := range nodes {
		if err := healthy(n); err != nil {
			t.Error(err)
		}
	}
	labels, selector := selected("everywhere")
	sets := kube.Namespaced[appsv1.DaemonSet](b.client, breakableNamespace)
	create(t, sets, &appsv1.DaemonSet{
		ObjectMeta: named("everywhere"),
		Spec:       appsv1.DaemonSetSpec{Selector: selector, Template: podTemplate(labels)},
	})
	yaretest.WaitFor(t, sets, "everywhere", func(d *appsv1.DaemonSet) error {
		if d.Status.NumberAvailable != breakableNodes {
			return fmt.Errorf("its status is %+v", d.Status)
		}
		return nil
	})
	pods, err := b.pods().List(t.Context(), kube.Label("app", "everywhere"))
	if err != nil {
		t.Fatal(err)
	}
	on, ips, hosts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		on[p.Spec.NodeName], ips[p.Status.PodIP], hosts[p.Status.HostIP] = true, true, true
	}
	if len(on) != breakableNodes || len(ips) != breakableNodes || len(hosts) != breakableNodes {
		t.Errorf("%d Pods are on %v, with addresses %v of %v", len(pods), on, ips, hosts)
	}
	remove(t, sets, "everywhere")
}

// Two planes on one machine know nothing of each other.
func (b *breakable) standsBesideAnother(t *testing.T) {
	other := shared(t).Client(t)
	for name, client := range map[string]*kube.Client{"one": b.client, "other": other} {
		create(t, kube.Namespaced[corev1.ConfigMap](client, metav1.NamespaceDefault),
			&corev1.ConfigMap{ObjectMeta: named("side-by-side"), Data: map[string]string{"plane": name}})
	}
	for name, client := range map[string]*kube.Client{"one": b.client, "other": other} {
		if c := get(t, kube.Namespaced[corev1.ConfigMap](client, metav1.NamespaceDefault), "side-by-side"); c.Data["plane"] != name {
			t.Errorf("%s has %v", name, c.Data)
		}
	}
	remove(t, kube.Namespaced[corev1.ConfigMap](other, metav1.NamespaceDefault), "side-by-side")
	get(t, b.configMaps(), "side-by-side")
	// One's credentials are nothing to the other.
	config := shared(t).Config()
	config.Host, config.CAData, config.Insecure = b.Server(), nil, true
	stranger, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.Everywhere[corev1.Namespace](stranger).List(t.Context()); !kube.HasReason(err, metav1.StatusReasonUnauthorized) {
		t.Errorf("with the credentials of another plane: %v", err)
	}
}

// A component that ends by itself is started again by itself.
func (b *breakable) endedByAStranger(t *testing.T, component string) {
	pid := b.Pids()[component]
	if pid == 0 || !alive(pid) {
		t.Fatalf("%s is not the process %d", component, pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		if alive(pid) {
			return fmt.Errorf("the process %d is not gone", pid)
		}
		return nil
	})
	b.goesOn(t)
}

// A component that was killed stays so until it is started.
func (b *breakable) killed(t *testing.T, component string) {
	if err := b.Kill(patient(t), component); err != nil {
		t.Fatal(err)
	}
	if err := b.Kill(patient(t), component); err == nil {
		t.Error("killed twice")
	}
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := b.configMaps().Create(short, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "meanwhile-"}})
	if needed := component == yaretest.Etcd || component == yaretest.APIServer; needed && err == nil || !needed && err != nil {
		t.Errorf("meanwhile, a write: %v", err)
	}
	if err := b.StartComponent(patient(t), component); err != nil {
		t.Fatal(err)
	}
	if err := b.StartComponent(patient(t), component); err == nil {
		t.Error("started twice")
	}
	b.goesOn(t)
}

func (b *breakable) schedulerStopped(t *testing.T) {
	if err := b.Stop(patient(t), yaretest.Scheduler); err != nil {
		t.Fatal(err)
	}
	create(t, b.pods(), newPod("unscheduled"))
	bound := newPod("bound")
	bound.Spec.NodeName = b.pod.Spec.NodeName
	create(t, b.pods(), bound)
	waitForPod(t, b.pods(), "bound", runs(true))
	if p := get(t, b.pods(), "unscheduled"); p.Spec.NodeName != "" || p.Status.Phase != corev1.PodPending {
		t.Errorf("without a scheduler a Pod got the node %q: %+v", p.Spec.NodeName, p.Status)
	}
	if err := b.Restart(patient(t), yaretest.Scheduler); err != nil {
		t.Fatal(err)
	}
	waitForPod(t, b.pods(), "unscheduled", runs(true))
	remove(t, b.pods(), "unscheduled")
	remove(t, b.pods(), "bound")
}

func (b *breakable) kubeletPaused(t *testing.T) {
	if err := b.Pause(patient(t), yaretest.Kubelet); err != nil {
		t.Fatal(err)
	}
	create(t, b.pods(), newPod("waits"))
	waitForPod(t, b.pods(), "waits", func(p *corev1.Pod) error {
		if p.Spec.NodeName == "" {
			return errors.New("it has no node")
		}
		return nil
	})
	remove(t, b.pods(), "waits")
	if p := get(t, b.pods(), "waits"); p.DeletionTimestamp == nil || p.Status.Phase != corev1.PodPending {
		t.Errorf("with its kubelet paused a Pod is %+v", p.Status)
	}
	if err := b.Resume(patient(t), yaretest.Kubelet); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitUntilGone(t, b.pods(), "waits")
	b.goesOn(t)
}

func (b *breakable) apiServerPaused(t *testing.T) {
	if err := b.Pause(patient(t), yaretest.APIServer); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := b.configMaps().Get(patient(t), "kept")
		answered <- err
	}()
	isEarly := false
	select {
	case err := <-answered:
		isEarly = true
		t.Errorf("a paused API server answered: %v", err)
	case <-time.After(time.Second):
	}
	if err := b.Resume(patient(t), yaretest.APIServer); err != nil {
		t.Fatal(err)
	}
	// The request was waiting in its connection.
	if !isEarly {
		if err := <-answered; err != nil {
			t.Errorf("after the pause: %v", err)
		}
	}
	b.goesOn(t)
}

// A watch from before a compaction is refused by a server that has no memory of it.
func (b *breakable) historyCompacted(t *testing.T) {
	old := create(t, b.configMaps(), &corev1.ConfigMap{ObjectMeta: named("old")}).ResourceVersion
	patch(t, b.configMaps(), "old", map[string]any{"data": map[string]any{"a": "b"}})
	revision, err := b.Compact(patient(t))
	if err != nil || revision == 0 {
		t.Fatalf("compacted at %d, %v", revision, err)
	}
	if err := b.Restart(patient(t), yaretest.APIServer); err != nil {
		t.Fatal(err)
	}
	err = nil
	for _, err = range b.configMaps().Watch(patient(t), old) {
		break
	}
	if !kube.HasReason(err, metav1.StatusReasonGone) {
		t.Errorf("a watch from before the compaction: %v", err)
	}
	b.goesOn(t)
}

// A component that is paused cannot end by itself, and goes all the same.
func (b *breakable) closedWhilePaused(t *testing.T) {
	if err := b.Pause(patient(t), yaretest.Etcd); err != nil {
		t.Fatal(err)
	}
	dir := b.Dir()
	b.Close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	for _, left := range mentioning(t, dir) {
		t.Errorf("left: %s", left)
	}
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}
