//go:build linux

package integration

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

const (
	// realNodeVariable asks for the tests of a real node, which compile a kubelet.
	realNodeVariable = "YARE_TEST_REAL_NODE"

	echoImage = "registry.example.com/echo:v1"
)

// findRealNode returns the path of the binary of a real node. It skips t where there can be none.
func findRealNode(t *testing.T) string {
	t.Helper()
	if os.Getenv(realNodeVariable) == "" {
		t.Skipf("a real node needs root and containerd, and compiling it takes minutes: set %s=1 to test it", realNodeVariable)
	}
	if os.Geteuid() != 0 {
		t.Skip("a real node needs root")
	}
	for _, program := range []string{"containerd", "runc", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("a real node needs %s: apt-get install containerd nftables containernetworking-plugins", program)
		}
	}
	binary, err := plane.Finder{Module: plane.RealNode(), Console: console.ForTests("yaretest")}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// The test is not parallel, because it looks at the whole machine.
func TestRealNode(t *testing.T) {
	binary := findRealNode(t)
	before := nodeTraces(t)
	t.Run("killed", func(t *testing.T) { realNodeIsKilled(t, binary) })
	t.Run("runs Pods", realNodeRunsPods)
	// What an earlier node left, which was killed, is removed by now.
	left := slices.DeleteFunc(nodeTraces(t), func(trace string) bool { return slices.Contains(before, trace) })
	if len(left) > 0 {
		t.Errorf("the node left something behind:\n%s\nbefore it was:\n%s", strings.Join(left, "\n"), strings.Join(before, "\n"))
	}
}

// nodeTraces returns the traces of real nodes on this machine.
func nodeTraces(t *testing.T) []string {
	t.Helper()
	traces := mentioning(t, "/var/tmp/yare-node-")
	for _, pattern := range []string{"/var/tmp/yare-node-*", "/sys/class/net/yare*", "/sys/fs/cgroup/yare-node-*", "/sys/fs/cgroup/*/yare-node-*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, found...)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "yare-node") {
			traces = append(traces, line)
		}
	}
	rules, err := exec.CommandContext(t.Context(), "nft", "list", "tables").CombinedOutput()
	if err != nil {
		t.Fatalf("nft list tables: %v: %s", err, rules)
	}
	for line := range strings.Lines(string(rules)) {
		if strings.Contains(line, "kube-proxy") {
			traces = append(traces, line)
		}
	}
	return traces
}

// When everything that runs the node is killed, the kernel ends the node with all its mounts, links
// and rules. Files stay until the next start of a node.
func realNodeIsKilled(t *testing.T, binary string) {
	home, _ := newHome(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = environment(home, parentVariable+"="+findBinary(t), nodeBinaryVariable+"="+binary)
	parent := start(t, home, cmd)
	parent.waitForLine(t, "etcd") // it prints the process IDs when all is ready
	if found := mentioning(t, "/var/tmp/yare-node-"); len(found) == 0 {
		t.Error("no process of the node was found, so nothing proves its end")
	}
	killProgram(t, home, "realnode up") // it does not get to clean up
	if err := parent.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-parent.Done()
	yaretest.Eventually(t, func() error {
		if left := mentioning(t, "/var/tmp/yare-node-"); len(left) > 0 {
			return fmt.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
		}
		return nil
	})
}

// killProgram kills the processes of a home whose command lines contain a text.
func killProgram(t *testing.T, home, text string) {
	t.Helper()
	killed := false
	for _, line := range mentioning(t, home) {
		number, command, _ := strings.Cut(line, " ")
		if pid, err := strconv.Atoi(number); err == nil && strings.Contains(command, text) {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
		}
	}
	if !killed {
		t.Fatalf("no process %q was found", text)
	}
}

func realNodeRunsPods(t *testing.T) {
	cluster := yaretest.New(t, yaretest.RealNode(echoArchive(t)))
	client := cluster.Client(t)
	nodes, err := kube.Everywhere[corev1.Node](client).List(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	if err := healthy(nodes[0]); err != nil {
		t.Error(err)
	}
	namespace := cluster.Namespace(t)
	labels, selector := selected("echo")
	const replicas = 2
	create(t, kube.Namespaced[appsv1.Deployment](client, namespace), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "echo"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(replicas)), Selector: selector, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(65532))},
				Containers: []corev1.Container{{
					Name: "echo", Image: echoImage, ImagePullPolicy: corev1.PullIfNotPresent,
					SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)},
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)},
					}},
				}},
			},
		}},
	})
	service := create(t, kube.Namespaced[corev1.Service](client, namespace), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{
			Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080),
		}}},
	})
	pods := kube.Namespaced[corev1.Pod](client, namespace)
	var running []*corev1.Pod
	yaretest.Eventually(t, func() error {
		if running, err = pods.List(t.Context()); err != nil {
			return err
		}
		for _, pod := range running {
			if err := runs(true)(pod); err != nil {
				return fmt.Errorf("%w: %+v", err, pod.Status)
			}
		}
		if len(running) != replicas {
			return fmt.Errorf("there are %d Pods", len(running))
		}
		return nil
	})
	name := running[0].Name
	if log := cluster.Kubectl(t, "", "-n", namespace, "logs", name); log != "echo listens on "+name+"\n" {
		t.Errorf("kubectl logs prints %q", log)
	}
	// A Pod reaches Services by their names, and both Pods stand behind the Service: one is the Pod
	// itself. The API server is such a Service, and its certificate is valid for the name.
	answers := map[string]bool{}
	yaretest.Eventually(t, func() error {
		answer, errs, err := cluster.TryKubectl(t, "", "-n", namespace, "exec", name, "--", "/echo", "get", "http://web/")
		if err != nil {
			return fmt.Errorf("%w: %s", err, errs)
		}
		answers[strings.TrimSpace(answer)] = true
		if len(answers) < replicas {
			return fmt.Errorf("only %v answered", answers)
		}
		return nil
	})
	if answer := cluster.Kubectl(t, "", "-n", namespace, "exec", name, "--", "/echo", "get", "https://kubernetes.default.svc/readyz"); answer != "ok" {
		t.Errorf("the API server answers a Pod with %q", answer)
	}
	// The machine reaches Pods, and Services if no other route leads into their network.
	for _, url := range []string{"http://" + running[0].Status.PodIP + ":8080/", "http://" + service.Spec.ClusterIP + "/"} {
		yaretest.Eventually(t, func() error {
			answer, err := httpGet(t.Context(), url)
			if err == nil && !answers[strings.TrimSpace(answer)] {
				err = fmt.Errorf("%s answers %q", url, answer)
			}
			return err
		})
	}
	remove(t, pods, name)
	yaretest.WaitUntilGone(t, pods, name)
	yaretest.WaitFor(t, kube.Namespaced[appsv1.Deployment](client, namespace), "echo", func(d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("%d replicas are available", d.Status.AvailableReplicas)
		}
		return nil
	})
}

func httpGet(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// echoArchive returns the path of a tar file with the image of testdata/echo, in the format of
// `docker save`.
func echoArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "echo")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./testdata/echo")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	layer := tarOf(t, "echo", program)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/echo"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{echoImage}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "echo.tar")
	content := tarOf(t, "config.json", config, "layer.tar", layer, "manifest.json", manifest)
	if err := os.WriteFile(archive, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return archive
}

// tarOf returns a tar file with files, given as name, content, name, content, …
func tarOf(t *testing.T, files ...any) []byte {
	t.Helper()
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for i := 0; i < len(files); i += 2 {
		name, content := files[i].(string), files[i+1].([]byte)
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}
