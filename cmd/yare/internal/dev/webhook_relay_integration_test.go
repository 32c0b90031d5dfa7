package dev

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// answerReviews returns a handler of admission reviews that refuses with a message, or allows without one.
func answerReviews(message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": review.Request.UID, "allowed": message == "", "status": map[string]any{"message": message}},
		})
	}
}

// While yare dev restarts the operator, kubectl apply waits, and gets the answer of the next operator. If the operator is
// away for longer, the user sees why.
func TestWebhookRelayLetsKubectlWait(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client, namespace := cluster.Client(t), cluster.Namespace(t)
	f, _ := startFront(t)
	ca, err := os.ReadFile(f.caFile)
	if err != nil {
		t.Fatal(err)
	}
	stop := serveSocket(t, f, answerReviews("not yet"))
	none, url := admissionregistrationv1.SideEffectClassNone, f.url+"/validate"
	configuration, err := kube.Everywhere[admissionregistrationv1.ValidatingWebhookConfiguration](client).Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "relay-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "relay.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"checked": "yes"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.TryKubectl(t, "", "delete", "validatingwebhookconfiguration", configuration.Name) })
	apply := func(name string) <-chan string {
		answer := make(chan string, 1)
		go func() {
			text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {checked: \"yes\"}}\n", name, namespace)
			out, problems, _ := cluster.TryKubectl(t, text, "apply", "-f", "-")
			answer <- out + problems
		}()
		return answer
	}
	yaretest.Eventually(t, func() error { // the API server observes the configuration
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "first", Labels: map[string]string{"checked": "yes"}}}
		if _, err := kube.Create(t.Context(), client, object, kube.DryRun()); err == nil || !strings.Contains(err.Error(), "not yet") {
			return fmt.Errorf("%v, want the refusal of the operator", err)
		}
		return nil
	})
	restart := func(answer <-chan string, message, want string) (stop func()) {
		t.Helper()
		yaretest.Consistently(t, 1500*time.Millisecond, func() error {
			select {
			case text := <-answer:
				return fmt.Errorf("kubectl has not waited: %s", text)
			default:
				return nil
			}
		})
		f.resume()
		stop = serveSocket(t, f, answerReviews(message))
		if text := <-answer; !strings.Contains(text, want) {
			t.Errorf("kubectl printed %q, want %q of the next operator", text, want)
		}
		return stop
	}
	f.pause()
	stop()
	stop = restart(apply("second"), "", "second created")
	stop() // a crash: nobody pauses the relay
	stop = restart(apply("third"), "still wrong", "still wrong")
	f.pause()
	stop()
	f.recordAbsence(time.Hour, "the operator ended by itself (exit status 3)")
	if text := <-apply("fourth"); !strings.Contains(text, "the operator ended by itself (exit status 3)") {
		t.Errorf("kubectl printed %q, want the reason", text)
	}
}
