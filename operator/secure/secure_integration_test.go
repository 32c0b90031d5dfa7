package secure_test

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
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
	return sendSecure(t, http.MethodGet, address, path, token, "")
}

// sendSecure sends a request to a program that listens with --listen-secure, and returns the answer.
func sendSecure(t *testing.T, method, address, path, token, sent string) (code int, text string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+address+path, strings.NewReader(sent))
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

// waitUntilAllowed waits until an account has a permission. An answer counts for a minute, so the permission must be there
// before the first request.
func waitUntilAllowed(t *testing.T, account *yaretest.ServiceAccount, path, verb string) {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}
	yaretest.Eventually(t, func() error {
		answer, err := kube.Everywhere[authorizationv1.SelfSubjectAccessReview](account.Client(t)).Create(t.Context(), review)
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("the account may not %s %s yet", verb, path)
		}
		return err
	})
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
	waitUntilAllowed(t, reader, "/metrics", "get")
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

// The level of the log changes while the program runs, for those whom the cluster allows to put it.
func TestLevelOfTheLogChanges(t *testing.T) {
	t.Parallel()
	const path = "/debug/flags/v"
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	account, reader, stranger := cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace)
	account.Allow(t, "", rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})
	reader.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: []string{"put"}})
	waitUntilAllowed(t, reader, path, "put")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := yaretest.Run(t, account.Kubeconfig(), "/usr/bin/env", programVariable+"=with", self, "run", "--listen-secure", "127.0.0.1:0")
	address := addressOf(t, p)
	allowed, denied := reader.Config(t).BearerToken, stranger.Config(t).BearerToken
	// A request without TLS is logged with -v.
	details := func() (n int) {
		if response, err := http.Get("http://" + address + "/healthz"); err == nil {
			response.Body.Close()
		}
		for _, line := range p.Log() {
			n += strings.Count(line, "TLS handshake error")
		}
		return n
	}
	put := func(token, level string, want int) {
		t.Helper()
		if code, text := sendSecure(t, http.MethodPut, address, path, token, level); code != want {
			t.Errorf("a PUT of %q: %d %s, want %d", level, code, text, want)
		}
	}
	put("", "4", http.StatusUnauthorized)
	put(denied, "4", http.StatusForbidden)
	put(allowed, "loud", http.StatusBadRequest)
	put(allowed, strings.Repeat("4", 100), http.StatusBadRequest)
	if n := details(); n > 0 {
		t.Errorf("%d details are logged without -v", n)
	}
	put(allowed, "4\n", http.StatusOK)
	p.WaitForLog(t, "the level of the log was set")
	yaretest.Eventually(t, func() error {
		if details() == 0 {
			return errors.New("no detail is logged after the PUT of 4")
		}
		return nil
	})
	put(allowed, "0", http.StatusOK)
	before := details()
	put(allowed, "0", http.StatusOK)
	if after := details(); after != before {
		t.Errorf("%d details are logged after the PUT of 0", after-before)
	}
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
}
