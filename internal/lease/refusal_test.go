package lease

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// Promise 19: an orderly end releases the lease, unless a write of the term may still be carried out.
// Bug: after a refusal for good with the code 500, the leader left its lease to expire.
func TestReleaseAfterARefusalForGood(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		`failed to create typed patch object (n/web; /v1, Kind=ConfigMap): .data.a: expected string, got 5`: true,
		`admission webhook "quota.example.com" denied the request: the quota cannot be read`:                true,
		`etcdserver: request timed out`: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":500}`, message)
		}))
		t.Cleanup(server.Close)
		var now time.Duration
		f := NewFence(func() Reading { return at(now) }, DefaultTiming())
		c, err := kube.NewClient(&kube.Config{Host: server.URL, WrapAttempts: f.Handler})
		if err != nil {
			t.Fatal(err)
		}
		if !f.term.extend(at(0)) {
			t.Fatal("no term")
		}
		if _, err := kube.Apply(t.Context(), c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}}); err == nil {
			t.Fatal("no error")
		}
		now = 10 * time.Second
		if got := f.term.release(t.Context()); got != want {
			t.Errorf("ten seconds after %q the lease may be released: %t", message, got)
		}
	}
}
