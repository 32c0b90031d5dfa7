package faults

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/testkit/testcert"
)

// Each kind disturbs the first calls in its way. Calls about dry runs are never disturbed.
func TestCallServer(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]string{
		WebhookDown: "EOF", WebhookFailing: "500", WebhookUntrusted: "certificate", WebhookSlow: "200 true", WebhookTwice: "200 false",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			program := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				fmt.Fprint(w, `{"response":{"uid":"1","allowed":false}}`)
			}))
			t.Cleanup(program.Close)
			s, err := newCallServer(kind)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			})
			url := s.addTarget(program.URL, testcert.PEM(program.Certificate()))
			if got := callWebhook(t, s, url, false); got != "200 true" || s.hasDisturbanceBegun() {
				t.Errorf("a call before the disturbance: %s", got)
			}
			s.allowDisturbance()
			if got := callWebhook(t, s, url, true); kind != WebhookUntrusted && got != "200 true" {
				t.Errorf("a call about a dry run: %s", got)
			}
			if got := callWebhook(t, s, url, false); !strings.Contains(got, want) || !s.hasDisturbanceBegun() {
				t.Errorf("a disturbed call: %s, want %s", got, want)
			}
			if got := calls.Load(); got > 0 != (kind == WebhookTwice) {
				t.Errorf("the webhook of the program got %d calls", got)
			}
		})
	}
}

// Calls for conversions are forwarded before and after the disturbance. The query has the timeout of the call.
func TestServerOfConversions(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]string{ConversionDown: "EOF", ConversionFailing: "500", ConversionUntrusted: "certificate", ConversionSlow: "200 true"} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			program := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprintf(w, `{"allowed":%t}`, r.URL.Query().Get("timeout") == "30s")
			}))
			t.Cleanup(program.Close)
			s, err := newCallServer(kind)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			})
			url := s.addTarget(program.URL, testcert.PEM(program.Certificate())) + "?timeout=30s"
			if got := callWebhook(t, s, url, false); got != "200 true" || s.hasDisturbanceBegun() {
				t.Errorf("a call before the disturbance: %s", got)
			}
			s.allowDisturbance()
			if got := callWebhook(t, s, url, false); !strings.Contains(got, want) || !s.hasDisturbanceBegun() || s.isDisturbanceOver() {
				t.Errorf("a disturbed call: %s, want %s", got, want)
			}
			s.mu.Lock()
			s.until = time.Now().Add(-time.Second)
			s.mu.Unlock()
			if got := callWebhook(t, s, url, false); got != "200 true" || !s.isDisturbanceOver() {
				t.Errorf("a call after the disturbance: %s", got)
			}
		})
	}
}

// callWebhook calls a server as an API server does, and returns the status with the answer, or the error.
func callWebhook(t *testing.T, s *callServer, url string, isDryRun bool) string {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.bundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","dryRun":%t}}`, isDryRun)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(response.StatusCode, " ", strings.Contains(string(answer), `"allowed":true`))
}
