package operator_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/securepages"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// Somebody takes the rights of a program away, and its watches end. Before, the program saw no change any more, while health,
// readiness and metrics said that all was well. The program publishes now that its stream does not watch, and goes on when the
// rights are back.
func TestProgramThatLosesItsRights(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[operator.Gadget](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	account := cluster.ServiceAccount(t, namespace)
	rule := rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"gadgets"}, Verbs: []string{"get", "list", "watch"}}
	account.Allow(t, namespace, rule)
	network := account.Proxy(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := yaretest.Run(t, network.Kubeconfig(), self, "as:watcher", "run", "--listen", "127.0.0.1:0", "--watch-namespace", namespace)
	address := securepages.AddressOf(t, process)
	page := func(path string) (code int, text string, err error) {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		read, err := io.ReadAll(response.Body)
		return response.StatusCode, string(read), err
	}
	waitForWatching := func(want int) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			_, text, err := page("/metrics")
			lines := linesWith(text, "yare_stream_watching{")
			if err == nil && (len(lines) != 1 || !strings.HasSuffix(lines[0], fmt.Sprint(" ", want))) {
				err = fmt.Errorf("the metrics have %q", lines)
			}
			return err
		})
	}
	waitForWatching(1)

	bindings, err := kube.Namespaced[rbacv1.RoleBinding](client, namespace).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range bindings {
		if err := client.Delete(t.Context(), bindings[i]); err != nil {
			t.Fatal(err)
		}
	}
	network.CutNow() // RBAC ends no open watch
	network.Mend()
	waitForWatching(0)
	if _, err := kube.Namespaced[operator.Gadget](client, namespace).Create(t.Context(), &operator.Gadget{ObjectMeta: metav1.ObjectMeta{Name: "unseen"}}); err != nil {
		t.Fatal(err)
	}
	if code, text, err := page("/healthz"); code != http.StatusOK || err != nil {
		t.Errorf("a program without rights must stay alive: %d %s %v", code, text, err)
	}
	yaretest.Eventually(t, func() error {
		log := process.Log()
		if !slices.ContainsFunc(log, func(l string) bool { return strings.Contains(l, "orbidden") && strings.Contains(l, "gadgets") }) {
			return fmt.Errorf("the log does not name the missing right: %v", log)
		}
		return nil
	})

	account.Allow(t, namespace, rule)
	waitForWatching(1)
	process.WaitForLine(t, "added unseen")
}
