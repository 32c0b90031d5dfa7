package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"sync"
	"time"
)

const (
	// certificateLifetime is how long a self-signed certificate is valid.
	certificateLifetime = 30 * 24 * time.Hour
	// renewBefore is how long before the end of a certificate its successor takes over.
	renewBefore = 10 * 24 * time.Hour
	// clockSkew is how far the clock of a client may be behind.
	clockSkew = time.Hour
)

// SelfSigned returns certificates for these names. A new certificate is generated, in memory, before the last
// one expires. Clients cannot verify the certificates. So a certificate protects a connection only against
// listening by others, and not against somebody who pretends to be the program.
func SelfSigned(names ...string) Certificates {
	var mu sync.Mutex // guards current and renewal
	var current *tls.Certificate
	var renewal time.Time // when current gets a successor
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if current != nil && now.Before(renewal) {
			return current, nil
		}
		made, err := generate(names, now)
		if err != nil {
			return nil, fmt.Errorf("generate a certificate: %w", err)
		}
		current, renewal = made, now.Add(certificateLifetime-renewBefore)
		return made, nil
	}
}

// generate returns a certificate for serving, for these names, that is valid from now on.
func generate(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{ // the serial number is random
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(certificateLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	content, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key}, nil
}
