// Package securepages reads the pages of programs with --listen-secure in tests.
package securepages

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// AddressOf returns the address on which a program listens.
func AddressOf(t *testing.T, p *yaretest.Process) string {
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

// Get returns the answer to a GET of a page.
func Get(t *testing.T, address, path, token string) (code int, text string) {
	t.Helper()
	return Send(t, http.MethodGet, address, path, token, "")
}

// Send sends a request with a body, and returns the answer. The token can be empty.
func Send(t *testing.T, method, address, path, token, sent string) (code int, text string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate is self-signed
	}}
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

// WaitUntilAllowed waits until an account has a permission. An answer counts for a minute, so the permission must be
// there before the first request.
func WaitUntilAllowed(t *testing.T, account *yaretest.ServiceAccount, path, verb string) {
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
