package yaretest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// Each test of the process has a namespace of its own on one control plane.
func Example() {
	// In a file that ends in _test.go:
	_ = func(t *testing.T) {
		cluster := yaretest.Shared(t)
		namespace := cluster.Namespace(t)
		pods, err := kube.Namespaced[corev1.Pod](cluster.Client(t), namespace).List(t.Context())
		if err != nil || len(pods) != 0 {
			t.Errorf("there are %d pods, %v", len(pods), err)
		}
	}
}

func TestNamespacesAreApart(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	if again := yaretest.Shared(t); again != cluster {
		t.Error("the tests of one process do not share their control plane")
	}
	one, two := cluster.Namespace(t), cluster.Namespace(t)
	if one == two {
		t.Errorf("both are called %s", one)
	}
	cluster.Kubectl(t, "", "create", "configmap", "a", "--namespace", one)
	if out := cluster.Kubectl(t, "", "get", "configmaps", "--namespace", two, "-o", "name"); strings.Contains(out, "configmap/a") {
		t.Errorf("in the other: %s", out)
	}
	if _, stderr, err := cluster.TryKubectl(t, "", "get", "configmap", "none"); err == nil || !strings.Contains(stderr, "NotFound") {
		t.Errorf("%v: %s", err, stderr)
	}
}

// A namespace does not outlive its test.
func TestNamespaceEndsWithItsTest(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	var name string
	t.Run("inner", func(t *testing.T) { name = cluster.Namespace(t) })
	yaretest.Eventually(t, func() error {
		got, err := kube.Get[corev1.Namespace](t.Context(), cluster.Client(t), "", name)
		switch {
		case kube.IsNotFound(err), err == nil && got.DeletionTimestamp != nil:
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("the namespace %s is still there", name)
	})
}

// A ServiceAccount may do what it was allowed, where it was allowed, and nothing else.
func TestServiceAccount(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	home, other := cluster.Namespace(t), cluster.Namespace(t)
	account := cluster.ServiceAccount(t, home)
	client := account.Client(t)
	list := func(namespace string) error {
		_, err := kube.Namespaced[corev1.ConfigMap](client, namespace).List(t.Context())
		return err
	}
	if err := list(home); !kube.IsForbidden(err) {
		t.Errorf("without rights: %v", err)
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}
	account.Allow(t, home, rule)
	yaretest.Eventually(t, func() error { return list(home) })
	if err := list(other); !kube.IsForbidden(err) {
		t.Errorf("in another namespace: %v", err)
	}
	_, err := kube.Namespaced[corev1.ConfigMap](client, home).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: home}})
	if !kube.IsForbidden(err) {
		t.Errorf("create: %v", err)
	}
	account.Allow(t, "", rule)
	yaretest.Eventually(t, func() error { return list(other) })
}

// echo is a program that shows what Run gives it.
const echo = `package main

import (
	"fmt"
	"os"
	"os/signal"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	fmt.Println("arguments", os.Args[1:])
	fmt.Fprintln(os.Stderr, "kubeconfig", os.Getenv("KUBECONFIG"))
	<-signals
	fmt.Print("no end of line")
	fmt.Println()
	os.Exit(7)
}
`

func TestProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{"main.go": echo, "go.mod": "module echo\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var built string
	t.Run("life", func(t *testing.T) {
		built = yaretest.Build(t, folder)
		if again := yaretest.Build(t, folder); again != built {
			t.Errorf("built twice: %s and %s", built, again)
		}
		p := yaretest.Run(t, "/the/kubeconfig", built, "-a", "b")
		p.WaitForLine(t, "arguments [-a b]")
		p.WaitForLog(t, "/the/kubeconfig")
		if status := p.Interrupt(t); status != 7 {
			t.Errorf("the status is %d", status)
		}
		if lines := p.Lines(); !slices.Equal(lines, []string{"arguments [-a b]", "no end of line"}) {
			t.Errorf("it printed %q", lines)
		}
		p.Kill() // of what has ended is nothing
		killed := yaretest.Run(t, "", built)
		killed.WaitForLine(t, "arguments []")
		killed.Kill()
		if status := killed.Wait(t); status != -1 {
			t.Errorf("killed, the status is %d", status)
		}
	})
	if _, err := os.Stat(built); !os.IsNotExist(err) {
		t.Errorf("the program is left behind: %v", err)
	}
}

// The parts of a private control plane can be broken, and mended.
func TestFaults(t *testing.T) {
	cluster := yaretest.New(t, yaretest.Nodes(2))
	reach := func() error {
		_, _, err := cluster.TryKubectl(t, "", "get", "--raw", "/readyz", "--request-timeout=2s")
		return err
	}
	yaretest.Eventually(t, func() error {
		if out := cluster.Kubectl(t, "", "get", "nodes", "-o", "name"); strings.Count(out, "node/") != 2 {
			return fmt.Errorf("the nodes are %s", out)
		}
		return nil
	})
	for name, fault := range map[string]struct{ begin, end func(testing.TB, string) }{
		"stop":  {cluster.Stop, cluster.StartComponent},
		"kill":  {cluster.Kill, cluster.StartComponent},
		"pause": {cluster.Pause, cluster.Resume},
	} {
		fault.begin(t, yaretest.APIServer)
		if reach() == nil {
			t.Errorf("%s: it can still be reached", name)
		}
		fault.end(t, yaretest.APIServer)
		yaretest.Eventually(t, reach)
	}
	cluster.Compact(t)
	cluster.Restart(t, yaretest.Etcd)
	yaretest.Eventually(t, reach)
}
