package kube_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

func TestSubresourcesOfTheRealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	c, namespace, ctx := cluster.Client(t), cluster.Namespace(t), t.Context()

	seconds := int64(600)
	accounts := kube.Namespaced[corev1.ServiceAccount](c, namespace)
	must(accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}))(t)
	token := must(kube.CreateSubresource[authenticationv1.TokenRequest](ctx, accounts, "robot", "token",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}))(t)
	review := must(kube.Everywhere[authenticationv1.TokenReview](c).Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}))(t)
	if want := "system:serviceaccount:" + namespace + ":robot"; review.Status.User.Username != want {
		t.Errorf("the token is that of %q, want %q", review.Status.User.Username, want)
	}

	pods := kube.Namespaced[corev1.Pod](c, namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}},
		// No scheduler binds it.
		Spec: corev1.PodSpec{SchedulerName: "none", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	must(pods.Create(ctx, pod))(t)
	nodes := must(kube.Everywhere[corev1.Node](c).List(ctx))(t)
	must(kube.CreateSubresource[metav1.Status](ctx, pods, "web", "binding",
		&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodes[0].Name}}))(t)
	yaretest.Eventually(t, func() error {
		live, err := pods.Get(ctx, "web")
		if err == nil && live.Status.Phase != corev1.PodRunning {
			err = errors.New("the Pod is not running: " + string(live.Status.Phase))
		}
		return err
	})

	log := must(pods.Logs(ctx, "web", kube.LogOptions{Follow: true}))(t)
	defer log.Close()
	if text := string(must(io.ReadAll(log))(t)); !strings.Contains(text, "web is simulated") {
		t.Errorf("the log of the simulated Pod is %q", text)
	}
	if _, err := pods.Logs(ctx, "web", kube.LogOptions{Container: "none"}); !kube.HasReason(err, metav1.StatusReasonBadRequest) {
		t.Errorf("the log of a container that does not exist: %v", err)
	}

	one := intstr.FromInt32(1)
	budgets := kube.Namespaced[policyv1.PodDisruptionBudget](c, namespace)
	must(budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}},
	}))(t)
	evict := func() error {
		_, err := kube.CreateSubresource[metav1.Status](ctx, pods, "web", "eviction", &policyv1.Eviction{})
		return err
	}
	if err := evict(); !kube.IsTooManyRequests(err) {
		t.Errorf("an eviction against the budget: %v", err)
	}
	if err := budgets.Delete(ctx, "web"); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, evict)
	yaretest.Eventually(t, func() error {
		live, err := pods.Get(ctx, "web")
		if err == nil && live.DeletionTimestamp == nil {
			err = errors.New("the evicted Pod is not being deleted")
		}
		return kube.IgnoreNotFound(err)
	})
}
