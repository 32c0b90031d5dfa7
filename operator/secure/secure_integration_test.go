package secure_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// askSecure returns the answer of a program that listens with --listen-secure.
func askSecure(t *testing.T, address, path, token string) (code int, text string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// addressOf returns the address on which a program listens.
func addressOf(t *testing.T, p *yaretest.Process) string {
	t.Helper()
	const message = "serving health and metrics"
	p.WaitForLog(t, message)
	for _, line := range p.Log() {
		var logged struct{ Msg, Address string }
		if strings.Contains(line, message) && json.Unmarshal([]byte(line), &logged) == nil {
			return logged.Address
		}
	}
	t.Fatalf("the log has no address: %v", p.Log())
	return ""
}

// startSecure starts a program with --listen-secure as an account.
func startSecure(t *testing.T, account *yaretest.ServiceAccount) (p *yaretest.Process, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p = yaretest.Run(t, account.Kubeconfig(), "/usr/bin/env", programVariable+"=with", self, "run", "--listen-secure", "127.0.0.1:0", "-v")
	return p, addressOf(t, p)
}

// The metrics are for those whom the cluster allows to get them, and the health is for all.
func TestSecureMetrics(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	account, reader, stranger := cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace)
	account.Allow(t, "", rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})
	reader.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	// An answer counts for a minute, so the permission must be there before the first request.
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}}
	yaretest.Eventually(t, func() error {
		answer, err := kube.Everywhere[authorizationv1.SelfSubjectAccessReview](reader.Client(t)).Create(t.Context(), review)
		if err == nil && !answer.Status.Allowed {
			err = errors.New("the reader may not get /metrics yet")
		}
		return err
	})
	p, address := startSecure(t, account)
	allowed, denied := reader.Config(t).BearerToken, stranger.Config(t).BearerToken
	for _, test := range []struct {
		path, token string
		code        int
		text        string
	}{
		{"/healthz", "", 200, "ok\n"},
		{"/readyz", "", 200, "ok\n"},
		{"/metrics", "", 401, "bearer token"},
		{"/metrics", "nonsense", 401, "bearer token"},
		{"/metrics", denied, 403, "nonResourceURLs"},
		{"/metrics", allowed, 200, "\nyare_build_info{"}, {"/metrics", allowed, 200, "\nyare_certificate_expiry_timestamp_seconds{server=\"pages\"} "},
		{"/other", allowed, 403, "nonResourceURLs"},
	} {
		if code, text := askSecure(t, address, test.path, test.token); code != test.code || !strings.Contains(text, test.text) {
			t.Errorf("%s: %d %s, want %d with %q", test.path, code, text, test.code, test.text)
		}
	}
	response, err := http.Get("http://" + address + "/metrics")
	if err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", response.Status)
		}
	}
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	for _, line := range p.Log() {
		if strings.Contains(line, allowed) || strings.Contains(line, denied) {
			t.Errorf("the log has a token: %s", line)
		}
	}
}

// A program that may not ask the cluster allows nothing, and logs the missing permission.
func TestSecureMetricsWithoutPermissions(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	account := cluster.ServiceAccount(t, cluster.Namespace(t))
	p, address := startSecure(t, account)
	if code, text := askSecure(t, address, "/metrics", account.Config(t).BearerToken); code != 503 || strings.Contains(text, "yare_") {
		t.Errorf("/metrics: %d %s", code, text)
	}
	p.WaitForLog(t, "the account may not create tokenreviews.authentication.k8s.io")
	if code, _ := askSecure(t, address, "/healthz", ""); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
}
