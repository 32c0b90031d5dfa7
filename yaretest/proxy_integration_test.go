package yaretest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// through returns a client whose requests go through a proxy, and are not repeated: the test
// looks at each.
func through(t *testing.T, proxy *yaretest.Proxy) *kube.Client {
	t.Helper()
	config, _, err := kube.ConfigSource{Kubeconfig: proxy.Kubeconfig()}.Load()
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "tester/1 (test)"
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestProxyNotesRequests(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	proxy := cluster.Proxy(t)
	client := through(t, proxy)
	maps := kube.Namespaced[corev1.ConfigMap](client, namespace)
	ctx := t.Context()
	made, err := maps.Create(ctx, configMap(namespace, "a"))
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range maps.Watch(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		_ = event
		break // the first has come, while the request goes on
	}
	_, listed := maps.List(ctx)
	_, got := maps.Get(ctx, "a")
	_, replaced := maps.Replace(ctx, made)
	_, patched := maps.Patch(ctx, "a", kube.MergePatch(map[string]any{"data": map[string]any{"k": "v"}}))
	for _, err := range []error{listed, got, replaced, patched, maps.Delete(ctx, "a"), maps.DeleteAll(ctx, []kube.Selector{kube.Everything()})} {
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := kube.Get[corev1.Namespace](ctx, client, "", namespace); err != nil {
		t.Error(err)
	}
	var said []string
	for _, r := range proxy.Requests() {
		said = append(said, r.String())
	}
	want := []string{
		"create configmaps " + namespace + "/ 201", "watch configmaps " + namespace + "/ 200",
		"list configmaps " + namespace + "/ 200", "get configmaps " + namespace + "/a 200",
		"update configmaps " + namespace + "/a 200", "patch configmaps " + namespace + "/a 200",
		"delete configmaps " + namespace + "/a 200", "deletecollection configmaps " + namespace + "/ 200",
		"get namespaces /" + namespace + " 200",
	}
	if !slices.Equal(said, want) {
		t.Errorf("it noted\n%q, want\n%q", said, want)
	}
	if n := len(proxy.Writes()); n != 5 {
		t.Errorf("it noted %d writes", n)
	}
	if agent := proxy.Requests()[0].UserAgent; !strings.HasPrefix(agent, "tester/") {
		t.Errorf("the user agent is %q", agent)
	}
	proxy.RequireIdle(t, 0)
}

// Cut at a write, it lets nothing through until it is mended, and the write has been
// carried out or not, as was asked for.
func TestProxyCuts(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	proxy := cluster.Proxy(t)
	client := through(t, proxy)
	maps, direct := kube.Namespaced[corev1.ConfigMap](client, namespace), kube.Namespaced[corev1.ConfigMap](cluster.Client(t), namespace)
	watching := make(chan error)
	for i, moment := range []string{"before", "after"} {
		go func() {
			for range maps.Watch(t.Context(), "") {
			}
			watching <- nil
		}()
		if moment == "before" {
			proxy.CutBeforeWrite(2)
		} else {
			proxy.CutAfterWrite(2)
		}
		kept, lost := fmt.Sprint("kept-", i), fmt.Sprint("lost-", i)
		if _, err := maps.Create(t.Context(), configMap(namespace, kept)); err != nil {
			t.Fatalf("%s: the first write: %v", moment, err)
		}
		if _, err := maps.Create(t.Context(), configMap(namespace, lost)); !kube.IsUnknown(err) {
			t.Errorf("%s: the second write: %v", moment, err)
		}
		proxy.WaitForCut(t)
		<-watching
		if _, err := maps.Get(t.Context(), kept); !kube.IsUnreachable(err) {
			t.Errorf("%s: a read got through: %v", moment, err)
		}
		if _, err := direct.Get(t.Context(), lost); kube.IsNotFound(err) != (moment == "before") {
			t.Errorf("cut %s the write, reading what it was to make says: %v", moment, err)
		}
		proxy.Mend()
		if _, err := maps.Get(t.Context(), kept); err != nil {
			t.Errorf("%s: mended: %v", moment, err)
		}
	}
	proxy.CutNow()
	if _, err := maps.List(t.Context()); !kube.IsUnreachable(err) {
		t.Errorf("cut now: %v", err)
	}
}

// The proxy gives the rights of the account that it was made from. Only users of its
// kubeconfig get these rights.
func TestProxyOfAccount(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	proxy := cluster.ServiceAccount(t, namespace).Proxy(t)
	if _, err := kube.Namespaced[corev1.ConfigMap](through(t, proxy), namespace).List(t.Context()); !kube.IsForbidden(err) {
		t.Errorf("without rights: %v", err)
	}
	config, _, err := kube.ConfigSource{Kubeconfig: proxy.Kubeconfig()}.Load()
	if err != nil {
		t.Fatal(err)
	}
	config.BearerToken = "guessed"
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.Everywhere[corev1.Namespace](client).List(t.Context()); !kube.HasReason(err, metav1.StatusReasonUnauthorized) {
		t.Errorf("with another token: %v", err)
	}
	last := proxy.Requests()
	if len(last) != 1 || last[0].Code != http.StatusForbidden {
		t.Errorf("it noted %v", last)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	namespace := cluster.Namespace(t)
	pods := kube.Namespaced[corev1.Pod](client, namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	yaretest.Eventually(t, func() error { // its ServiceAccount comes a little later
		_, err := pods.Create(t.Context(), pod)
		return err
	})
	if got := yaretest.WaitForCondition(t, pods, "web", "Ready"); got.Status.PodIP == "" {
		t.Errorf("it is ready without an address: %+v", got.Status)
	}
	running := yaretest.WaitFor(t, pods, "web", func(p *corev1.Pod) error {
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s", p.Status.Phase)
		}
		return nil
	})
	if err := client.Delete(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	yaretest.WaitUntilGone(t, pods, "web")
}

// A program that fails before its first write never cuts the proxy. The test then fails, and does not wait for the timeout of go
// test, which is ten minutes.
func TestProxyThatIsNeverCut(t *testing.T) {
	t.Parallel()
	proxy := yaretest.Shared(t).Proxy(t)
	proxy.CutAfterWrite(1)
	record(t, "never", func(t testing.TB) { proxy.WaitForCut(yaretest.Within(t, 50*time.Millisecond)) }).requireFailure(t, "the proxy was not cut: it has seen 0 writes")
}
