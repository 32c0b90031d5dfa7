package operator

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// start starts this test binary as one of its programs.
func start(t *testing.T, kubeconfig, name string, args ...string) *yaretest.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return yaretest.Run(t, kubeconfig, self, append([]string{"as:" + name}, args...)...)
}

// nowhere is a kubeconfig of a server that is not there.
func nowhere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func defineGadgets(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	defined, err := kube.TypeOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, defined)
}

func createGadget(t *testing.T, cluster *yaretest.Cluster, namespace, name string) {
	t.Helper()
	o := &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := kube.Namespaced[gadget](cluster.Client(t), namespace).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// occurrences counts the log lines with this message.
func occurrences(p *yaretest.Process, message string) (n int) {
	for _, line := range p.Log() {
		if strings.Contains(line, `"msg":"`+message) {
			n++
		}
	}
	return n
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"failing": 1, "finished": 0, "panicking": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, nowhere(t), name)
			if status := p.Wait(t); status != want {
				t.Errorf("the status is %d, not %d", status, want)
			}
			if log := strings.Join(p.Log(), "\n"); name == "failing" && !strings.HasSuffix(log, ": it went wrong") {
				t.Errorf("it said: %s", log)
			}
		})
	}
	p := start(t, nowhere(t), "finished", "--context", "elsewhere")
	if status := p.Wait(t); status != 1 || !strings.Contains(strings.Join(p.Log(), ""), `"elsewhere"`) {
		t.Errorf("with an unknown context: status %d, %v", status, p.Log())
	}
}

// After a signal the parts get to finish, and the status is 0; a second one ends it.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			slow := start(t, nowhere(t), "slow")
			slow.WaitForLine(t, "started")
			slow.Signal(t, signal)
			if status := slow.Wait(t); status != 0 || slow.Lines()[len(slow.Lines())-1] != "finished" {
				t.Errorf("status %d after %v, %v", status, slow.Lines(), slow.Log())
			}
			stubborn := start(t, nowhere(t), "stubborn")
			stubborn.WaitForLine(t, "started")
			// Equal signals that come close together can be one; the second is sent until
			// it is noticed.
			for {
				stubborn.Signal(t, signal)
				if strings.Contains(strings.Join(stubborn.Log(), ""), "second signal") {
					break
				}
			}
			if status := stubborn.Wait(t); status != 1 {
				t.Errorf("after two signals the status is %d", status)
			}
		})
	}
}

// A missing definition, and missing rights: one line each with what to do, and one when it
// is over; then the program works.
func TestTroublesWithAServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Start(t)
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	p := start(t, account.Kubeconfig(), "watcher", "--namespace", namespace)
	p.WaitForLog(t, "the account may not watch gadgets.example.com in namespace "+namespace+"; will try again")
	account.Allow(t, namespace, rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"gadgets"}, Verbs: []string{"list", "watch"}})
	p.WaitForLog(t, "the server does not know gadgets.example.com; will try again")
	p.WaitForLog(t, "crd | kubectl apply -f -")
	defineGadgets(t, cluster)
	p.WaitForLog(t, "the server knows gadgets.example.com now")
	createGadget(t, cluster, namespace, "a")
	p.WaitForLine(t, "added a")
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	for _, message := range []string{"the account may not watch", "the account may watch", "the server does not know", "the server knows"} {
		if n := occurrences(p, message); n != 1 {
			t.Errorf("%q was told %d times", message, n)
		}
	}
	for _, line := range p.Log() {
		if !json.Valid([]byte(line)) {
			t.Errorf("this is no terminal, but the log is no JSON: %s", line)
		}
	}
	// For a second run in this process, which shares the control plane.
	cluster.Kubectl(t, "", "delete", "crd", "gadgets.example.com")
}

// Credentials that the server does not accept.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Start(t)
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, "worn-out"
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	p := start(t, path, "watcher")
	p.WaitForLog(t, "the server does not accept the credentials; will try again")
	if status := p.Interrupt(t); status != 0 || occurrences(p, "the server does not accept") != 1 {
		t.Errorf("status %d, %v", status, p.Log())
	}
}

// A program whose server is away at its start goes on trying, and then works.
func TestServerComesLater(t *testing.T) {
	cluster := yaretest.New(t)
	defineGadgets(t, cluster)
	createGadget(t, cluster, "default", "a")
	cluster.Stop(t, yaretest.APIServer)
	p := start(t, cluster.Kubeconfig(), "watcher")
	p.WaitForLog(t, "the server cannot be reached; will try again")
	cluster.StartComponent(t, yaretest.APIServer)
	p.WaitForLog(t, "the server can be reached again")
	p.WaitForLine(t, "added a")
	p.WaitForLine(t, "synced")
	if status := p.Interrupt(t); status != 0 || occurrences(p, "the server cannot be reached") != 1 {
		t.Errorf("status %d, %v", status, p.Log())
	}
	if last := p.Lines()[len(p.Lines())-1]; last != "the watch has ended" {
		t.Errorf("the last line is %q", last)
	}
}
