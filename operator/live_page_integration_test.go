package operator_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/yaretest"
)

// addressLog is a log that finds the address of the pages.
type addressLog struct {
	mu      sync.Mutex
	text    strings.Builder
	address string
}

func (l *addressLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var logged struct{ Msg, Address string }
	if json.Unmarshal(line, &logged) == nil && logged.Msg == "serving health and metrics" {
		l.address = logged.Address
	}
	return l.text.Write(line)
}

func (l *addressLog) found() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.address
}

// The page shows each change with what it has changed, what the reconcile wrote, and the story of each object. It sends no
// request, and shows nothing of a Secret (promise 20).
func TestLivePageOnAServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineGadgets(t, cluster)
	namespace := cluster.Namespace(t)
	const secret = "a-secret-text"
	program := operator.Program{
		Parts: func() ([]operator.Part, error) {
			return []operator.Part{operator.LivePage(), controller.New(func(ctx context.Context, g *operator.Gadget, c *kube.Client) (controller.Action, error) {
				meta := metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}
				_, err := kube.Apply(ctx, c, kube.OwnedBy(g, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": fmt.Appendf(nil, "%s%d", secret, g.Spec.Size)}}))
				if err == nil {
					_, err = kube.Apply(ctx, c, kube.OwnedBy(g, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"size": fmt.Sprint(g.Spec.Size)}}))
				}
				if g.Spec.Size == 13 {
					return controller.Done(), errors.New("13 is no size")
				}
				return controller.RequeueAfter(time.Hour), err
			}, controller.Owns[corev1.ConfigMap](), controller.Owns[corev1.Secret]())}, nil
		},
	}
	log := new(addressLog)
	program.Log = slog.NewJSONHandler(log, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		status, _, stderr := operator.CallProgram(ctx, "gadgets", program, "--kubeconfig", cluster.Kubeconfig(), "--watch-namespace", namespace, "--listen", "127.0.0.1:0", "--live-page")
		if status != 0 {
			t.Errorf("status %d: %s", status, stderr)
		}
		ended <- status
	}()
	defer func() { cancel(); <-ended }()
	yaretest.Eventually(t, func() error {
		if log.found() == "" {
			return errors.New("the program does not listen yet")
		}
		return nil
	})
	// shows waits until a page has all these texts, and returns the page.
	shows := func(path string, texts ...string) (page string) {
		t.Helper()
		yaretest.Eventually(t, func() error {
			response, err := http.Get("http://" + log.found() + path)
			if err != nil {
				return err
			}
			page = readAll(response)
			for _, text := range texts {
				if !strings.Contains(page, text) {
					return fmt.Errorf("%s has no %s: %s", path, text, page)
				}
			}
			return nil
		})
		if strings.Contains(page, secret) || strings.Contains(page, "YS1zZWNyZXQtdGV4d") {
			t.Errorf("%s has the content of the Secret: %s", path, page)
		}
		return page
	}
	gadgets := kube.Namespaced[operator.Gadget](cluster.Client(t), namespace)
	resize := func(size int) {
		t.Helper()
		if _, err := gadgets.Modify(t.Context(), "one", func(g *operator.Gadget) error { g.Spec.Size = size; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	createGadget(t, cluster, namespace, "one")
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
	if err := gadgets.Delete(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, func() error {
		response, err := http.Get("http://" + log.found() + "/live-page")
		if err != nil {
			return err
		}
		if text := readAll(response); strings.Contains(text, "Failing objects") {
			return fmt.Errorf("an object that is gone still fails: %s", text)
		}
		return nil
	})
}

// readAll returns the body of an answer, or the error.
func readAll(response *http.Response) string {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// With --listen-secure the page is for those whom the cluster allows to get it, by a bearer token or as a password.
func TestLivePageIsForThoseWhoMayGetIt(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	account, reader, stranger := cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace), cluster.ServiceAccount(t, namespace)
	for _, access := range operator.SecurePagesAccess() {
		account.Allow(t, "", rbacv1.PolicyRule{APIGroups: []string{access.Resource.Group}, Resources: []string{access.Resource.Plural}, Verbs: []string{"create"}})
	}
	reader.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{"/live-page", "/live-page/*"}, Verbs: []string{"get"}})
	stranger.Allow(t, "", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	p := start(t, account.Kubeconfig(), "slow", "--listen-secure", "127.0.0.1:0", "--live-page")
	address := addressOf(t, p)
	allowed, denied := reader.Config(t).BearerToken, stranger.Config(t).BearerToken
	yaretest.Eventually(t, func() error {
		// An answer counts for a minute: this path is asked about for no other purpose.
		if code, text := askSecure(t, address, "/live-page/style.css", allowed); code != 200 {
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
		if code, text := askSecure(t, address, test.path, test.token); code != test.code {
			t.Errorf("%s: %d, want %d: %s", test.path, code, test.code, text)
		}
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/live-page", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("anybody", allowed)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if text := readAll(response); response.StatusCode != 200 || !strings.Contains(text, "the certificate of the pages ends on") {
		t.Errorf("with a password: %s: %s", response.Status, text)
	}
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
}
