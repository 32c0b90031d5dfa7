package secure_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/internal/testkit/securepages"
	"github.com/yare-go/yare/yaretest"
)

// startSecure starts a program with --listen-secure as an account.
func startSecure(t *testing.T, account *yaretest.ServiceAccount) (p *yaretest.Process, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p = yaretest.Run(t, account.Kubeconfig(), "/usr/bin/env", programVariable+"=with", self, "run", "--listen-secure", "127.0.0.1:0", "-v")
	return p, securepages.AddressOf(t, p)
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
	securepages.WaitUntilAllowed(t, reader, "/metrics", "get")
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
		if code, text := securepages.Get(t, address, test.path, test.token); code != test.code || !strings.Contains(text, test.text) {
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
	if code, text := securepages.Get(t, address, "/metrics", account.Config(t).BearerToken); code != 503 || strings.Contains(text, "yare_") {
		t.Errorf("/metrics: %d %s", code, text)
	}
	p.WaitForLog(t, "the account may not create tokenreviews.authentication.k8s.io")
	if code, _ := securepages.Get(t, address, "/healthz", ""); code != 200 {
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
	securepages.WaitUntilAllowed(t, reader, path, "put")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := yaretest.Run(t, account.Kubeconfig(), "/usr/bin/env", programVariable+"=with", self, "run", "--listen-secure", "127.0.0.1:0")
	address := securepages.AddressOf(t, p)
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
		if code, text := securepages.Send(t, http.MethodPut, address, path, token, level); code != want {
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
