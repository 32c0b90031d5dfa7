// Package pki makes the certificates with which the API server and the kubelet of a real node
// authenticate each other. They are thrown away with the node.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/yare-go/yare/realnode/internal/layout"
)

const (
	// lifetime is longer than any node should live.
	lifetime = 365 * 24 * time.Hour
	// skew makes a certificate valid a little before it was made.
	skew = time.Hour
)

// Write writes the certificates and keys of a node into its folder.
func Write(l layout.Layout, now time.Time) error {
	authority, err := newIssuer("yare-node", now)
	if err != nil {
		return err
	}
	if err := writeFile(l.Path(layout.CAFile), "CERTIFICATE", authority.certificate.Raw); err != nil {
		return err
	}
	err = authority.write(l.Path(layout.KubeletCert), l.Path(layout.KubeletKey), &x509.Certificate{
		Subject:     pkix.Name{CommonName: layout.NodeName},
		DNSNames:    []string{layout.NodeName},
		IPAddresses: []net.IP{l.NodeAddress().AsSlice()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	return authority.write(l.Path(layout.APIServerCert), l.Path(layout.APIServerKey), &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver-kubelet-client"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// An issuer signs certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time
}

func newIssuer(name string, now time.Time) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate the key of the node's authority: %w", err)
	}
	i := &issuer{key: key, now: now}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := i.sign(template, template, key)
	if err != nil {
		return nil, err
	}
	if i.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the certificate of the node's authority: %w", err)
	}
	return i, nil
}

// write makes a key, signs its certificate, and writes both.
func (i *issuer) write(certFile, keyFile string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate the key of %s: %w", template.Subject.CommonName, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := i.sign(template, i.certificate, key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key of %s: %w", template.Subject.CommonName, err)
	}
	if err := writeFile(certFile, "CERTIFICATE", der); err != nil {
		return err
	}
	return writeFile(keyFile, "EC PRIVATE KEY", encoded)
}

func (i *issuer) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = i.now.Add(-skew), i.now.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), i.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

func writeFile(name, kind string, der []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("make the folder of the node's certificates: %w", err)
	}
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write the node's certificates: %w", err)
	}
	return nil
}
