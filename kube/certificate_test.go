package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func certificatePEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// farFuture returns a time at which everything cached has expired.
func farFuture() time.Time { return time.Now().Add(24 * time.Hour) }

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ahab"}, NotAfter: farFuture(),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	file := kubeconfig(t, "tls", "SERVER", fmt.Sprintf("client-certificate-data: %s, client-key-data: %s",
		encoded("CERTIFICATE", der), encoded("EC PRIVATE KEY", keyDER)), ", insecure-skip-tls-verify: true")
	ask := seen(t, file, func(r *http.Request) string { return r.TLS.PeerCertificates[0].Subject.CommonName },
		func(s *httptest.Server) {
			s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
			s.StartTLS()
		})
	if got := ask(); got != "ahab" {
		t.Errorf("the server saw %q", got)
	}
}
