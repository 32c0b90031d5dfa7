package yaretest_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// The program of an operator as users run it: compiled, with the rights of a ServiceAccount, and ended by a signal. The
// proxy shows each request, and that nothing happens at rest.
func ExampleBuild() {
	test := func(t *testing.T) {
		cluster := yaretest.Shared(t)
		namespace := cluster.Namespace(t)
		var account *yaretest.ServiceAccount = cluster.ServiceAccount(t, namespace)
		account.Allow(t, namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
		var proxy *yaretest.Proxy = account.Proxy(t)

		var process *yaretest.Process = yaretest.Run(t, proxy.Kubeconfig(), yaretest.Build(t, "."), "-v", "--watch-namespace", namespace)
		process.WaitForLog(t, "is synced")
		proxy.RequireIdle(t, time.Second, process)
		for _, r := range proxy.Writes() {
			var request yaretest.Request = r
			if request.Namespace != namespace {
				t.Errorf("a write in another namespace: %s", request)
			}
		}
		t.Log(len(proxy.Requests()), process.Lines(), process.Log())

		process.Signal(t, syscall.SIGHUP) // os.Signal of the program's own
		var interrupt os.Signal = os.Interrupt
		process.Signal(t, interrupt)
		if status := process.Wait(t); status != 0 {
			t.Errorf("it ended with %d", status)
		}

		// The account itself, for a test of its rights.
		if _, err := kube.Get[corev1.Secret](t.Context(), account.Client(t), namespace, "db"); !kube.IsForbidden(err) {
			t.Errorf("the account may read Secrets: %v", err)
		}
		t.Log(account.Kubeconfig(), account.Config(t).Host)
	}
	_ = test
}

// A program loses its connection at each of its writes, once before the server has the write and once after. It must come
// to the same end.
func ExampleProxy_CutBeforeWrite() {
	test := func(t *testing.T, parts func() []operator.Part) {
		cluster := yaretest.Shared(t)
		for n := 1; n <= 3; n++ {
			for _, cutsBefore := range []bool{true, false} {
				namespace, proxy := cluster.Namespace(t), cluster.Proxy(t)
				if cutsBefore {
					proxy.CutBeforeWrite(n)
				} else {
					proxy.CutAfterWrite(n)
				}
				yaretest.RunParts(t, proxy, parts()...)
				proxy.WaitForCut(t)
				proxy.Mend()
				yaretest.WaitFor(t, kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace), "made", func(m *corev1.ConfigMap) error {
					if len(m.Data) == 0 {
						return fmt.Errorf("it is empty")
					}
					return nil
				})
				proxy.CutNow() // and at rest
				proxy.Mend()
			}
		}
	}
	_ = test
}

// A control plane of the test's own can be broken: here the API server crashes, etcd freezes, and the history is gone. A
// test on an existing cluster skips this.
func ExampleNew() {
	test := func(t *testing.T, parts []operator.Part) {
		options := []yaretest.Option{yaretest.Kubernetes("1.37"), yaretest.Nodes(2), yaretest.APIServerArgs("--watch-cache=false")}
		cluster := yaretest.New(t, options...)
		namespace := cluster.Namespace(t)
		yaretest.RunParts(t, cluster, parts...)

		cluster.Pause(t, yaretest.Etcd)
		cluster.Resume(t, yaretest.Etcd)
		cluster.Kill(t, yaretest.APIServer)
		cluster.StartComponent(t, yaretest.APIServer)
		cluster.Compact(t) // watches begin anew
		for _, component := range []string{yaretest.ControllerManager, yaretest.Scheduler, yaretest.Kubelet} {
			cluster.Restart(t, component)
		}
		cluster.Stop(t, yaretest.Scheduler)

		maps := kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace)
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}); err != nil {
			t.Fatal(err)
		}
		yaretest.Consistently(t, time.Second, func() error {
			_, err := maps.Get(t.Context(), "settings")
			return err
		})
		testWithTimeout := yaretest.Within(t, 5*time.Minute) // one wait that takes longer than a minute
		yaretest.WaitUntilGone(testWithTimeout, maps, "made-by-the-operator")
		t.Log(cluster.Config().Host, cluster.Kubeconfig()) // for other tools
	}
	_ = test
}

// Pods run on a real node, whose images are in tar files. It needs Linux, root and containerd.
func ExampleRealNode() {
	test := func(t *testing.T) {
		cluster := yaretest.New(t, yaretest.RealNode("webapp.tar"))
		t.Log(cluster.Kubectl(t, "", "get", "nodes"))
	}
	_ = test
}

// A program for all namespaces, in a test whose own namespaces would narrow it. Any target has a kubeconfig.
func ExampleCluster_InNamespaces() {
	test := func(t *testing.T, parts []operator.Part) {
		cluster := yaretest.Shared(t)
		cluster.Namespace(t)
		var target yaretest.Target = cluster.InNamespaces() // all
		t.Log(target.Kubeconfig())
		yaretest.RunParts(t, target, parts...)
	}
	_ = test
}

// The admission policies that a program's manifests have, in the namespace of the test. It fails for a mistake in an
// expression.
func ExampleCluster_ApplyPolicies() {
	test := func(t *testing.T) {
		cluster := yaretest.Shared(t)
		namespace := cluster.Namespace(t)
		yaretest.Define[Reminder](t, cluster)
		cluster.ApplyPolicies(t, yaretest.Build(t, "."), "--watch-namespace", namespace)
		_, err := kube.Namespaced[Reminder](cluster.Client(t), namespace).Create(t.Context(), reminder(namespace, "too long"))
		if !kube.IsInvalid(err) {
			t.Errorf("%v, want the refusal of the policy", err)
		}
	}
	_ = test
}

// The operator needs each permission that it prints, and no others.
func ExamplePermissionProof() {
	test := func(t *testing.T) {
		use := func(t *testing.T, run *yaretest.PermissionRun) {
			process := yaretest.Run(t, run.Proxy.Kubeconfig(), run.Program, run.Args...)
			maps := kube.Namespaced[corev1.ConfigMap](run.Cluster.Client(t), run.Namespace)
			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}); err != nil {
				t.Fatal(err)
			}
			yaretest.WaitFor(t, maps, "hello", func(m *corev1.ConfigMap) error { // until the operator has done its work
				if m.Data["greeting"] == "" {
					return fmt.Errorf("there is no greeting, with the rules %v", run.Granted)
				}
				return nil
			})
			process.Interrupt(t)
		}
		// Begin is for the permissions that no request shows, such as create beside the patch of an apply.
		begin := func(t *testing.T, run *yaretest.PermissionRun) {
			yaretest.Run(t, run.Proxy.Kubeconfig(), run.Program, run.Args...)
		}
		yaretest.PermissionProof{Program: yaretest.Build(t, "."), Use: use, Begin: begin}.Run(t)
	}
	_ = test
}

// The operator works with the permissions that it prints for one namespace.
func ExampleServiceAccount_AllowPrinted() {
	test := func(t *testing.T) {
		cluster := yaretest.Shared(t)
		namespace := cluster.Namespace(t)
		account, program := cluster.ServiceAccount(t, namespace), yaretest.Build(t, ".")
		rules := account.AllowPrinted(t, program, "--watch-namespace", namespace)
		yaretest.Run(t, account.Kubeconfig(), program, "--watch-namespace", namespace)
		t.Logf("the program runs with %v", rules)
	}
	_ = test
}
