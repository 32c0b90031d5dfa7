package kube

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/testkit/testcert"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	cert, key := testcert.NewClient(t, "ahab")
	file := writeKubeconfig(t, "tls", "SERVER", fmt.Sprintf("client-certificate-data: %s, client-key-data: %s",
		base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key)), ", insecure-skip-tls-verify: true")
	ask := seen(t, file, func(r *http.Request) string { return r.TLS.PeerCertificates[0].Subject.CommonName },
		func(s *httptest.Server) {
			s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
			s.StartTLS()
		})
	if got := ask(); got != "ahab" {
		t.Errorf("the server saw %q", got)
	}
}

// When the client certificate in files has changed, the next request after some minutes uses a
// new connection. A request in flight ends undisturbed.
func TestCertificateFilesRotate(t *testing.T) {
	t.Parallel()
	names := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			never(t)(w, r)
		}
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	folder := t.TempDir()
	config := &Config{Host: server.URL, CAData: testcert.PEM(server.Certificate()), CertFile: filepath.Join(folder, "cert"), KeyFile: filepath.Join(folder, "key")}
	write := func(cert, key []byte) {
		if err := errors.Join(os.WriteFile(config.CertFile, cert, 0o600), os.WriteFile(config.KeyFile, key, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(testcert.NewClient(t, "first"))
	transport, err := newRoundTripper(config)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	transport.connections.now = func() time.Time { return now }
	check := func(want string) {
		t.Helper()
		ask(t, transport, server.URL)
		if got := <-names; got != want {
			t.Errorf("the server saw %s, want %s", got, want)
		}
	}
	check("first")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := transport.RoundTrip(request) //nolint:bodyclose // it is closed below, after a goroutine has read from it
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	<-names
	write(testcert.NewClient(t, "second"))
	check("first")
	now = now.Add(filePeriod)
	check("second")
	// What cannot be read leaves the connections as they are.
	write(nil, nil)
	now = now.Add(filePeriod)
	check("second")
	read := make(chan error, 1)
	go func() {
		_, err := slow.Body.Read(make([]byte, 1))
		read <- err
	}()
	select {
	case err := <-read:
		t.Errorf("the request in flight ended: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	slow.Body.Close()
	<-read
}

// When the CA file has changed, the next request after some minutes trusts the new CA.
func TestCAFileRotates(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ca")
	write := func(ca []byte) {
		if err := os.WriteFile(file, ca, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = discardLog()
	server.StartTLS()
	t.Cleanup(server.Close)
	other, _ := testcert.NewClient(t, "other")
	write(other)
	transport, err := newRoundTripper(&Config{Host: server.URL, CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	transport.connections.now = func() time.Time { return now }
	try := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	wantError(t, try(), "certificate signed by unknown authority")
	write(testcert.PEM(server.Certificate()))
	wantError(t, try(), "certificate signed by unknown authority")
	now = now.Add(filePeriod)
	if err := try(); err != nil {
		t.Error(err)
	}
	write([]byte("broken"))
	now = now.Add(filePeriod)
	transport.CloseIdleConnections()
	if err := try(); err != nil {
		t.Errorf("after the file broke: %v", err)
	}
}
