package yaretest

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/yare-go/yare/kube"
)

// Proxy is a proxy of the API server that records the requests sent through it, and that can be
// cut: now, or at the n-th write, before or after the server carried out the write. A test that
// cuts at each write of a program sees what a crash between its writes leaves.
//
//	proxy := cluster.Proxy(t)
//	proxy.CutAtWrite(2, yaretest.AfterWrite)
//	p := yaretest.Run(t, proxy.Kubeconfig(), program)
//	<-proxy.Cut()
//	p.Kill()
//	proxy.Mend()
//
// All requests through the proxy have the rights of the administrator or of the account from which the
// proxy was made.
type Proxy struct {
	cluster    *Cluster
	kubeconfig string
	journal    journal
	fault      fault
}

// Proxy starts a proxy of the API server with an administrator's rights. It ends after t.
func (c *Cluster) Proxy(t testing.TB) *Proxy {
	t.Helper()
	return newProxy(t, c, c.Config(), "")
}

// Proxy starts a proxy of the API server with the account's rights. It ends after t.
func (a *ServiceAccount) Proxy(t testing.TB) *Proxy {
	t.Helper()
	return newProxy(t, a.cluster, a.Config(t), a.namespace)
}

func newProxy(t testing.TB, cluster *Cluster, config *kube.Config, namespace string) *Proxy {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := kube.NewRoundTripper(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{cluster: cluster}
	p.fault.init()
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// The transport adds its own credentials.
			r.Out.Header.Del("Authorization")
		},
		Transport:     transport,
		FlushInterval: -1, // so that each event of a watch is forwarded at once
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(response *http.Response) error {
			e := entryOf(response.Request.Context())
			p.journal.answered(e, response.StatusCode)
			if p.fault.cutsAt(e.write, AfterWrite) {
				return errCut
			}
			return nil
		},
		// If the server gives no answer, the client gets none either: its connection breaks.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	// Other users of this machine must not use the proxy.
	secret := rand.Text()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			http.Error(w, "this proxy belongs to a test", http.StatusUnauthorized)
			return
		}
		p.serve(forward, w, r)
	}))
	server.Config.ErrorLog = forward.ErrorLog // clients are killed while they connect
	server.StartTLS()
	t.Cleanup(func() {
		p.fault.cut() // ends the watches, which Close would wait for
		server.Close()
		if idle, ok := transport.(interface{ CloseIdleConnections() }); ok {
			idle.CloseIdleConnections()
		}
	})
	p.kubeconfig = writeKubeconfig(t, credentials{
		server: server.URL, ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		user: "proxy", token: secret, namespace: namespace,
	})
	return p
}

func (p *Proxy) serve(forward http.Handler, w http.ResponseWriter, r *http.Request) {
	e := p.journal.begin(r)
	defer p.journal.end(e)
	ctx, release, ok := p.fault.admit(r.Context(), e.write)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	defer release()
	forward.ServeHTTP(w, r.WithContext(context.WithValue(ctx, entryKey{}, e)))
}

// entryKey is the key of a request's entry in its context.
type entryKey struct{}

func entryOf(ctx context.Context) *entry { return ctx.Value(entryKey{}).(*entry) }

// Kubeconfig returns the path of a kubeconfig file whose server is the proxy.
func (p *Proxy) Kubeconfig() string { return p.kubeconfig }

var errCut = errors.New("the connection was cut")
