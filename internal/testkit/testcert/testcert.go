// Package testcert makes certificates for tests.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"
)

// New returns the certificate of a template with a new key. issuer signs it. If issuer is nil, the certificate signs itself. A
// template without an end gets an end in a day.
func New(t testing.TB, template x509.Certificate, issuer *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.PublicKey = key.Public()
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if issuer == nil {
		issuer = &tls.Certificate{PrivateKey: key, Leaf: &template}
	}
	content, err := x509.CreateCertificate(rand.Reader, &template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(content)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key, Leaf: leaf}
}

// NewClient returns a certificate of a user that signs itself, and its key, in PEM.
func NewClient(t testing.TB, user string) (cert, key []byte) {
	t.Helper()
	c := New(t, x509.Certificate{
		Subject: pkix.Name{CommonName: user}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, nil)
	return PEM(c.Leaf), KeyPEM(t, c.PrivateKey)
}

// PEM returns a certificate in PEM.
func PEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// KeyPEM returns a private key in PEM.
func KeyPEM(t testing.TB, key crypto.PrivateKey) []byte {
	t.Helper()
	content, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: content})
}
