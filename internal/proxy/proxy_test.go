package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// noDeletions is a hook that refuses deletions.
type noDeletions struct{}

func (noDeletions) RoundTrip(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
	if x.Verb == wire.VerbDelete {
		return proxy.Answer(proxy.NewStatus(http.StatusForbidden, metav1.StatusReasonForbidden, "no deletions")), nil
	}
	return next(r)
}

// start starts a proxy of a handler, and returns a function that sends a request and returns the status, or 0 if the
// connection breaks.
func start(t *testing.T, server http.HandlerFunc, hooks ...proxy.Hook) (*proxy.Proxy, *proxy.Session, func(method string) int) {
	t.Helper()
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	p, err := proxy.New(proxy.Options{Target: &kube.Config{Host: upstream.URL, BearerToken: "own"}, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	session, err := p.NewSession("program")
	if err != nil {
		t.Fatal(err)
	}
	transport, err := kube.NewRoundTripper(session.Config())
	if err != nil {
		t.Fatal(err)
	}
	return p, session, func(method string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, session.Config().Host+"/api/v1/namespaces/a/pods/p", nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			return 0
		}
		response.Body.Close()
		return response.StatusCode
	}
}

func TestHookAnswersInPlaceOfServer(t *testing.T) {
	t.Parallel()
	p, _, send := start(t, func(_ http.ResponseWriter, r *http.Request) {
		if got := r.Method + " " + r.Header.Get("Authorization"); got != "GET Bearer own" {
			t.Errorf("the server receives %s", got)
		}
	}, noDeletions{})
	if got, deleted := send(http.MethodGet), send(http.MethodDelete); got != http.StatusOK || deleted != http.StatusForbidden {
		t.Errorf("a get is answered with %d, a deletion with %d", got, deleted)
	}
	all := p.Requests()
	if len(all) != 2 || all[0].Sent.IsZero() || all[0].Code != 200 || all[1].Code != 403 || !all[1].Sent.IsZero() || all[1].String() != "delete pods a/p" {
		t.Errorf("the proxy recorded %+v", all)
	}
}

// TestBreak checks that a session serves again after its requests were broken, and not after it was cut off.
func TestBreak(t *testing.T) {
	t.Parallel()
	received := make(chan struct{})
	_, session, send := start(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			close(received)
			<-r.Context().Done()
		}
	})
	code := make(chan int)
	go func() { code <- send(http.MethodPut) }()
	<-received
	session.Break()
	if broken, next := <-code, send(http.MethodGet); broken != 0 || next != http.StatusOK {
		t.Errorf("the broken request is answered with %d, the next one with %d", broken, next)
	}
	session.CutOff()
	if got := send(http.MethodGet); got != 0 {
		t.Errorf("a session that is cut off is answered with %d", got)
	}
}
