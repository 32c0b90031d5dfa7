package livepage_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// serve starts the program with the page, and returns the address of its pages.
func serve(t *testing.T, kubeconfig string, args ...string) (p *yaretest.Process, address string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p = yaretest.Run(t, kubeconfig, "/usr/bin/env", append([]string{programVariable + "=" + programWithPage, self, "run", "--live-page"}, args...)...)
	const message = "serving health and metrics"
	p.WaitForLog(t, message)
	for _, line := range p.Log() {
		var logged struct{ Msg, Address string }
		if strings.Contains(line, message) && json.Unmarshal([]byte(line), &logged) == nil {
			return p, logged.Address
		}
	}
	t.Fatalf("the log has no address: %v", p.Log())
	return nil, ""
}

// The page shows each change with what it has changed, what the reconcile wrote, and the story of each object. It sends no
// request, and shows nothing of a Secret (promise 20).
func TestLivePageOnAServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[Gadget](t, cluster)
	namespace := cluster.Namespace(t)
	p, address := serve(t, cluster.Kubeconfig(), "--watch-namespace", namespace, "--listen", "127.0.0.1:0")
	get := func(path string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		return readAll(response), nil
	}
	// shows waits until a page has all these texts, and returns the page.
	shows := func(path string, texts ...string) (page string) {
		t.Helper()
		yaretest.Eventually(t, func() (err error) {
			if page, err = get(path); err != nil {
				return err
			}
			for _, text := range texts {
				if !strings.Contains(page, text) {
					return fmt.Errorf("%s has no %s: %s", path, text, page)
				}
			}
			return nil
		})
		if strings.Contains(page, secretText) || strings.Contains(page, "YS1zZWNyZXQtdGV4d") {
			t.Errorf("%s has the content of the Secret: %s", path, page)
		}
		return page
	}
	gadgets := kube.Namespaced[Gadget](cluster.Client(t), namespace)
	resize := func(size int) {
		t.Helper()
		if _, err := gadgets.Modify(t.Context(), "one", func(g *Gadget) error { g.Spec.Size = size; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := gadgets.Create(t.Context(), &Gadget{ObjectMeta: metav1.ObjectMeta{Name: "one"}}); err != nil {
		t.Fatal(err)
	}
	shows("/live-page", `<span class="verb">added</span>`, `<code>.data.size</code> <del></del> <ins>&#34;0&#34;</ins>`, `<span class="badge good">created</span>`, "in 1h0m0s")
	resize(3)
	shows("/live-page", `<code>.spec.size</code> <del>0</del> <ins>3</ins>`, `<code>.data.size</code> <del>&#34;0&#34;</del> <ins>&#34;3&#34;</ins>`, `<span class="badge">changed</span>`)
	resize(13)
	page := shows("/live-page?show=failed", "13 is no size", "Failing objects", "again in")
	if strings.Contains(page, `class="row changed"`) || strings.Contains(page, `class="row quiet"`) {
		t.Errorf("the filter of failures shows others: %s", page)
	}
	shows("/live-page/object?kind=ConfigMap&namespace="+namespace+"&name=one", "the object was", `<del>&#34;0&#34;</del> <ins>&#34;3&#34;</ins>`, "Gadget")
	shows("/live-page/object?kind=Secret&namespace="+namespace+"&name=one", "(its content is not shown)", "The cache of the program does not hold this object now.")
	if text, err := get("/metrics"); err != nil || !strings.Contains(text, `result="error"}`) {
		t.Errorf("the metrics do not count beside the page: %v %s", err, text)
	}
	if err := gadgets.Delete(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		text, err := get("/live-page")
		if err == nil && strings.Contains(text, "Failing objects") {
			err = errors.New("an object that is gone still fails: " + text)
		}
		return err
	})
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
}

// With --listen-secure the page is for those whom the cluster allows to get it, by a bearer token or as a password.
func TestLivePageIsForThoseWhoMayGetIt(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	account, reader, stranger := cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace)
	account.Allow(t, "", rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}})
	reader.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{"/live-page", "/live-page/*"}, Verbs: []string{"get"}})
	stranger.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	p, address := serve(t, account.Kubeconfig(), "--listen-secure", "127.0.0.1:0")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(path string, authorize func(*http.Request)) (code int, text string) {
		t.Helper()
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		authorize(request)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, readAll(response)
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) {
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
		}
	}
	allowed, denied := reader.Config(t).BearerToken, stranger.Config(t).BearerToken
	yaretest.Eventually(t, func() error {
		// An answer counts for a minute: this path is asked about for no other purpose.
		if code, text := ask("/live-page/style.css", bearer(allowed)); code != 200 {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	for _, test := range []struct {
		path, token string
		code        int
	}{
		{"/live-page", "", 401}, {"/live-page", "nonsense", 401}, {"/live-page", denied, 403}, {"/live-page/events", denied, 403},
		{"/live-page", allowed, 200}, {"/live-page/object", allowed, 200}, {"/metrics", allowed, 403},
	} {
		if code, text := ask(test.path, bearer(test.token)); code != test.code {
			t.Errorf("%s: %d, want %d: %s", test.path, code, test.code, text)
		}
	}
	code, text := ask("/live-page", func(r *http.Request) { r.SetBasicAuth("anybody", allowed) })
	if code != 200 || !strings.Contains(text, "the certificate of the pages ends on") {
		t.Errorf("with a password: %d: %s", code, text)
	}
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
}
