// Package pki makes the certificate authority, the certificates and the keys of one
// control plane, by the code of kubeadm. All of it is thrown away with the plane.
package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

const (
	// lifetime is longer than any plane should live.
	lifetime = 365 * 24 * time.Hour
	// skew makes a certificate valid for machines whose clocks differ a little.
	skew = time.Hour
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// PEM is the authority's own certificate.
	PEM []byte
}

// Pair is a certificate and its private key, PEM encoded.
type Pair struct {
	Certificate, Key []byte
}

// NewAuthority makes a certificate authority.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	certificate, key, err := pkiutil.NewCertificateAuthority(config(cert.Config{CommonName: name}, now))
	if err != nil {
		return nil, fmt.Errorf("make the authority %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key, PEM: pkiutil.EncodeCertPEM(certificate)}, nil
}

// Server makes a serving certificate for the given names and addresses.
func (a *Authority) Server(name string, dnsNames []string, addresses []net.IP, now time.Time) (Pair, error) {
	return a.issue(cert.Config{
		CommonName: name,
		AltNames:   cert.AltNames{DNSNames: dnsNames, IPs: addresses},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now)
}

// Client makes a client certificate. Kubernetes reads the user from its common name and
// the user's groups from its organizations.
func (a *Authority) Client(user string, groups []string, now time.Time) (Pair, error) {
	return a.issue(
		cert.Config{CommonName: user, Organization: groups, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, now)
}

func (a *Authority) issue(c cert.Config, now time.Time) (Pair, error) {
	certificate, key, err := pkiutil.NewCertAndKey(a.certificate, a.key, config(c, now))
	if err != nil {
		return Pair{}, fmt.Errorf("make the certificate of %s: %w", c.CommonName, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", c.CommonName, err)
	}
	return Pair{Certificate: pkiutil.EncodeCertPEM(certificate), Key: keyPEM}, nil
}

// config returns the configuration of a certificate that is made now.
func config(c cert.Config, now time.Time) *pkiutil.CertConfig {
	c.NotBefore = now.Add(-skew)
	return &pkiutil.CertConfig{
		Config: c, NotAfter: now.Add(lifetime), EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
	}
}

// NewSigningKey makes the key pair that service account tokens are signed with. It is no certificate.
// Both halves are PEM encoded.
func NewSigningKey() (private, public []byte, err error) {
	key, err := pkiutil.NewPrivateKey(kubeadm.EncryptionAlgorithmECDSAP256)
	if err != nil {
		return nil, nil, fmt.Errorf("generate a signing key: %w", err)
	}
	if private, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		return nil, nil, fmt.Errorf("encode a signing key: %w", err)
	}
	if public, err = pkiutil.EncodePublicKeyPEM(key.Public()); err != nil {
		return nil, nil, fmt.Errorf("encode a public key: %w", err)
	}
	return private, public, nil
}
