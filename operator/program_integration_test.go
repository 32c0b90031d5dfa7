package operator_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

func defineGadgets(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	yaretest.Define[operator.Gadget](t, cluster)
}

func createGadget(t *testing.T, cluster *yaretest.Cluster, namespace, name string) {
	t.Helper()
	o := &operator.Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if _, err := kube.Namespaced[operator.Gadget](cluster.Client(t), namespace).Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// occurrences returns the number of log lines with this message.
func occurrences(p *yaretest.Process, message string) (n int) {
	for _, line := range p.Log() {
		if strings.Contains(line, `"msg":"`+message) {
			n++
		}
	}
	return n
}

// A missing definition and missing permissions are one line each with what to do, and one
// line when that is over. Then the program works.
func TestConnectionProblems(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t) // in the shared one other tests define the kind
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	p := start(t, account.Kubeconfig(), "watcher", "--watch-namespace", namespace)
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
			t.Errorf("%q was logged %d times", message, n)
		}
	}
	for _, line := range p.Log() {
		if !json.Valid([]byte(line)) {
			t.Errorf("this is no terminal, but the log is no JSON: %s", line)
		}
	}
}

// The server does not accept the credentials.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
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

// A program whose server cannot be reached at its start tries again, and then works.
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
