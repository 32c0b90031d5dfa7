package servercert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leaf returns the certificate of the next handshake.
func leaf(t *testing.T, certificates Certificates) *x509.Certificate {
	t.Helper()
	pair, err := certificates(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if end, err := certificates.End(); err != nil || !end.Equal(c.NotAfter) { // the alert for certificates needs it
		t.Errorf("the certificate ends at %s, and not at %s, %v", c.NotAfter, end, err)
	}
	return c
}

// A self-signed certificate is replaced long before it ends.
func TestSelfSignedCertificatesAreRotated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		certificates := SelfSigned("localhost", "web-0")
		first := leaf(t, certificates)
		if err := first.VerifyHostname("web-0"); err != nil {
			t.Error(err)
		}
		if err := first.CheckSignature(first.SignatureAlgorithm, first.RawTBSCertificate, first.Signature); err != nil {
			t.Error(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(first)
		if _, err := first.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", CurrentTime: time.Now()}); err != nil {
			t.Error(err)
		}
		if first.KeyUsage != x509.KeyUsageDigitalSignature || first.Subject.CommonName != "localhost" || first.SerialNumber.Sign() <= 0 {
			t.Errorf("the certificate is %+v", first)
		}
		if first.IsCA || len(first.ExtKeyUsage) != 1 || first.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth {
			t.Errorf("it may be used for more than serving: %+v", first)
		}
		serials := map[string]bool{}
		for range 100 * 4 {
			c := leaf(t, certificates)
			serials[c.SerialNumber.String()] = true
			if now := time.Now(); now.Before(c.NotBefore) || now.Add(9*24*time.Hour).After(c.NotAfter) {
				t.Fatalf("at %s it is valid from %s to %s", now, c.NotBefore, c.NotAfter)
			}
			time.Sleep(6 * time.Hour)
		}
		if len(serials) != 5 {
			t.Errorf("%d certificates in 100 days, want 5", len(serials))
		}
	})
}

func TestValidityOfCertificates(t *testing.T) {
	t.Parallel()
	for _, year := range []int{2026, 2049, 2050, 2077} {
		now := time.Date(year, 12, 20, 1, 2, 3, 0, time.FixedZone("", 3600))
		pair, err := generateCertificate([]string{"localhost"}, now)
		if err != nil {
			t.Fatal(err)
		}
		c := leaf(t, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair, nil })
		if !c.NotBefore.Equal(now.Add(-clockSkew)) || !c.NotAfter.Equal(now.Add(certificateLifetime)) {
			t.Errorf("of %s: from %s to %s", now, c.NotBefore, c.NotAfter)
		}
	}
}

// writePair writes a new certificate and its key, and returns its serial number.
func writePair(t *testing.T, certFile, keyFile string) string {
	t.Helper()
	pair, err := generateCertificate([]string{"localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		keyFile:  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return c.SerialNumber.String()
}

// A certificate in files is replaced without a restart. While the files cannot be used, the last
// certificate goes on.
func TestCertificatesInFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if _, err := FromFiles(certFile, keyFile, logger); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("without files: %v", err)
	}
	first := writePair(t, certFile, keyFile)
	certificates, err := FromFiles(certFile, keyFile, logger)
	if err != nil {
		t.Fatal(err)
	}
	if got := leaf(t, certificates).SerialNumber.String(); got != first {
		t.Errorf("the first: %s, want %s", got, first)
	}
	second := writePair(t, certFile, keyFile)
	if got := leaf(t, certificates).SerialNumber.String(); got != second {
		t.Errorf("after a change: %s, want %s", got, second)
	}
	if err := os.WriteFile(certFile, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := leaf(t, certificates).SerialNumber.String(); got != second {
			t.Errorf("with a broken file: %s, want %s", got, second)
		}
	}
	if n := strings.Count(log.String(), "cannot be read again"); n != 1 {
		t.Errorf("the log has the problem %d times:\n%s", n, log.String())
	}
	third := writePair(t, certFile, keyFile)
	if got := leaf(t, certificates).SerialNumber.String(); got != third {
		t.Errorf("mended: %s, want %s", got, third)
	}
	if !strings.Contains(log.String(), "can be read again") {
		t.Errorf("the log does not have the end of the problem:\n%s", log.String())
	}
}

// Requests over TLS reach a server, and the next connection has the next certificate.
func TestListen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePair(t, certFile, keyFile)
	certificates, err := FromFiles(certFile, keyFile, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	served := make(chan error)
	go func() { served <- server.Serve(Listen(listener, certificates)) }()
	for range 2 {
		want := writePair(t, certFile, keyFile)
		client := http.Client{Transport: &http.Transport{
			DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		response, err := client.Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if got := response.TLS.PeerCertificates[0].SerialNumber.String(); got != want || response.ProtoMajor != 1 {
			t.Errorf("%s with the certificate %s, want %s", response.Proto, got, want)
		}
	}
	server.Close()
	<-served
}
