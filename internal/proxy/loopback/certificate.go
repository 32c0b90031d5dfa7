package loopback

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"time"
)

// NewCertificate returns a serving certificate for 127.0.0.1, and the certificate of its authority in PEM. The authority
// can only sign certificates for 127.0.0.1, and nobody has its key. Both certificates are valid for a lifetime from now
// on. The certificate does not sign itself, because rustls refuses an authority as a server.
func NewCertificate(lifetime time.Duration) (serving tls.Certificate, authority []byte, err error) {
	address, now := net.IPv4(127, 0, 0, 1).To4(), time.Now()
	issuerKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	issuer := &x509.Certificate{ // the serial numbers are random
		Subject:               pkix.Name{CommonName: "yare loopback authority"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		// The name constraints (RFC 5280, section 4.2.1.10). An empty text stands for all names.
		PermittedDNSDomainsCritical: true,
		PermittedIPRanges:           []*net.IPNet{{IP: address, Mask: net.CIDRMask(32, 32)}},
		ExcludedIPRanges:            []*net.IPNet{{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}},
		ExcludedDNSDomains:          []string{""},
		ExcludedEmailAddresses:      []string{""},
		ExcludedURIDomains:          []string{""},
	}
	leaf := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "yare loopback"},
		NotBefore:   issuer.NotBefore,
		NotAfter:    issuer.NotAfter,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{address},
	}
	signed, err := x509.CreateCertificate(rand.Reader, issuer, issuer, issuerKey.Public(), issuerKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	if issuer, err = x509.ParseCertificate(signed); err != nil { // with the identifier of its key
		return tls.Certificate{}, nil, err
	}
	content, err := x509.CreateCertificate(rand.Reader, leaf, issuer, key.Public(), issuerKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{content}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), nil
}
