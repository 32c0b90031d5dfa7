package yaretest_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/plane"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// existingVariable holds the server of an existing cluster, for the tests of TestOnExistingCluster.
const existingVariable = "YARETEST_TEST_EXISTING"

// Tests use an existing cluster that allows tests, and do nothing to its control plane.
func TestExistingCluster(t *testing.T) {
	cluster := yaretest.New(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(variables ...string) (output string, passed bool) {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestOnExistingCluster$", "-test.v")
		// A minor version is for control planes that are started.
		inherited := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, plane.KubernetesVariable+"=") })
		cmd.Env = append(append(inherited, existingVariable+"="+cluster.Config().Host), variables...)
		text, err := cmd.CombinedOutput()
		return string(text), err == nil
	}
	existing := "YARETEST_KUBECONFIG" + "=" + cluster.Kubeconfig()
	if output, passed := run(existing); passed || !strings.Contains(output, "does not allow tests") || !strings.Contains(output, "kubectl label namespace kube-system yare-test=allowed") {
		t.Errorf("without the label (passed: %t): %s", passed, output)
	}
	if output, passed := run("YARETEST_KUBECONFIG" + "=/nowhere"); passed || !strings.Contains(output, "YARETEST_KUBECONFIG=/nowhere") {
		t.Errorf("without a file (passed: %t): %s", passed, output)
	}
	if output, passed := run("YARETEST_KUBECONFIG" + "=kubeconfig"); passed || !strings.Contains(output, "not an absolute path") {
		t.Errorf("with a relative path (passed: %t): %s", passed, output)
	}
	if _, err := kube.Everywhere[corev1.Namespace](cluster.Client(t)).Patch(t.Context(), "kube-system",
		kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"yare-test": "allowed"}}})); err != nil {
		t.Fatal(err)
	}
	output, passed := run(existing, "KUBECONFIG=/nowhere")
	if !passed {
		t.Fatal(output)
	}
	for _, name := range []string{"stop", "kill", "pause", "resume", "restart", "start", "compact", "new"} {
		if !strings.Contains(output, "--- SKIP: TestOnExistingCluster/"+name) {
			t.Errorf("%s is not skipped:\n%s", name, output)
		}
	}
}

// TestOnExistingCluster runs in a process that TestExistingCluster starts.
func TestOnExistingCluster(t *testing.T) {
	host := os.Getenv(existingVariable)
	if host == "" {
		t.Skip("TestExistingCluster runs it")
	}
	cluster := yaretest.Shared(t)
	if got := cluster.Config().Host; got != host {
		t.Fatalf("the cluster is %s, want %s", got, host)
	}
	// Bug: on an existing cluster kubectl did not run in a cleanup, because the context of the test has ended there.
	t.Cleanup(func() { cluster.Kubectl(t, "", "get", "namespaces") })
	for name, harm := range map[string]func(t *testing.T){
		"stop":    func(t *testing.T) { cluster.Stop(t, yaretest.Scheduler) },
		"kill":    func(t *testing.T) { cluster.Kill(t, yaretest.Scheduler) },
		"pause":   func(t *testing.T) { cluster.Pause(t, yaretest.Scheduler) },
		"resume":  func(t *testing.T) { cluster.Resume(t, yaretest.Scheduler) },
		"restart": func(t *testing.T) { cluster.Restart(t, yaretest.Scheduler) },
		"start":   func(t *testing.T) { cluster.StartComponent(t, yaretest.Scheduler) },
		"compact": func(t *testing.T) { cluster.Compact(t) },
		"new":     func(t *testing.T) { yaretest.New(t) },
	} {
		t.Run(name, harm)
	}
	if _, err := cluster.ControlPlane(); err == nil || !strings.Contains(err.Error(), "the existing cluster "+host) {
		t.Errorf("the error of the control plane is %v", err)
	}
	yaretest.Define[Reminder](t, cluster)
	namespace := cluster.Namespace(t)
	if out := cluster.Kubectl(t, "", "get", "namespace", namespace, "-o", "name"); !strings.Contains(out, namespace) {
		t.Errorf("kubectl printed %q", out)
	}
	called := make(chan struct{}, 1)
	yaretest.RunParts(t, cluster, controller.New(func(context.Context, *Reminder, *kube.Client) (controller.Action, error) {
		select {
		case called <- struct{}{}:
		default:
		}
		return controller.Done(), nil
	}))
	if _, err := kube.Namespaced[Reminder](cluster.Client(t), namespace).Create(t.Context(), reminder(namespace, "hello")); err != nil {
		t.Fatal(err)
	}
	<-called
}
