package servercert

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
	s := &selfSigned{names: names}
	return s.current
}

// selfSigned makes the certificates of [SelfSigned].
type selfSigned struct {
	names []string

	mu   sync.Mutex
	last *tls.Certificate
	// renewal is when last gets a successor.
	renewal time.Time
}

// current returns the last certificate, or its successor when that is due.
func (s *selfSigned) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.last != nil && now.Before(s.renewal) {
		return s.last, nil
	}
	made, err := generateCertificate(s.names, now)
	if err != nil {
		return nil, fmt.Errorf("generate a certificate: %w", err)
	}
	s.last, s.renewal = made, now.Add(certificateLifetime-renewBefore)
	return made, nil
}

// generateCertificate returns a self-signed certificate for these names that is valid from now on.
func generateCertificate(names []string, now time.Time) (*tls.Certificate, error) {
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
