package pods_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/serverminor"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/pods"
	"github.com/yare-go/yare/watch"
	"github.com/yare-go/yare/yaretest"
)

// A real API server takes the requests, and passes them on to the kubelet. The simulated kubelet
// refuses both, because the containers of its Pods do not run.
func TestPodsOfTheRealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace := cluster.Client(t), cluster.Namespace(t)
	api := kube.Namespaced[corev1.Pod](c, namespace)
	_, err := api.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := watch.Until(ctx, api, "web", func(p *corev1.Pod) (bool, error) { return p != nil && p.Status.Phase == corev1.PodRunning, nil }); err != nil {
		t.Fatal(err)
	}
	err = pods.Exec(t.Context(), c, namespace, "web", pods.Command{Args: []string{"true"}})
	// API servers before 1.36 lose the reason of the kubelet.
	want := "is simulated"
	if serverminor.Of(t, cluster) < 36 {
		want = "the server gives no reason"
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error of a command is %v", err)
	}
	_, err = pods.Dial(t.Context(), c, namespace, "web", 80)
	if e, ok := kube.AsError(err); !ok || e.Code != http.StatusNotImplemented || !strings.Contains(err.Error(), "is simulated") {
		t.Errorf("the error of a connection is %v", err)
	}
	if err := pods.Exec(t.Context(), c, namespace, "none", pods.Command{Args: []string{"true"}}); !kube.IsNotFound(err) {
		t.Errorf("the error of a command in no Pod is %v", err)
	}
}
