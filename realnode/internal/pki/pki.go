// Package pki makes the certificates with which the API server and the kubelet of a real node
// authenticate each other, by the code of kubeadm. They are thrown away with the node.
package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"

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
	authority, authorityKey, err := pkiutil.NewCertificateAuthority(config(cert.Config{CommonName: "yare-node"}, now))
	if err != nil {
		return fmt.Errorf("make the node's authority: %w", err)
	}
	if err := writeFile(l.Path(layout.CAFile), pkiutil.EncodeCertPEM(authority)); err != nil {
		return err
	}
	err = write(l.Path(layout.KubeletCert), l.Path(layout.KubeletKey), authority, authorityKey, config(cert.Config{
		CommonName: layout.NodeName,
		AltNames:   cert.AltNames{DNSNames: []string{layout.NodeName}, IPs: []net.IP{l.NodeAddress().AsSlice()}},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now))
	if err != nil {
		return err
	}
	return write(l.Path(layout.APIServerCert), l.Path(layout.APIServerKey), authority, authorityKey, config(cert.Config{
		CommonName: "kube-apiserver-kubelet-client",
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now))
}

// config returns the configuration of a certificate that is made now.
func config(c cert.Config, now time.Time) *pkiutil.CertConfig {
	c.NotBefore = now.Add(-skew)
	return &pkiutil.CertConfig{
		Config: c, NotAfter: now.Add(lifetime), EncryptionAlgorithm: kubeadm.EncryptionAlgorithmECDSAP256,
	}
}

// write makes a key, has the authority sign its certificate, and writes both.
func write(
	certFile, keyFile string, authority *x509.Certificate, authorityKey crypto.Signer, c *pkiutil.CertConfig,
) error {
	certificate, key, err := pkiutil.NewCertAndKey(authority, authorityKey, c)
	if err != nil {
		return fmt.Errorf("make the certificate of %s: %w", c.CommonName, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode the key of %s: %w", c.CommonName, err)
	}
	if err := writeFile(certFile, pkiutil.EncodeCertPEM(certificate)); err != nil {
		return err
	}
	return writeFile(keyFile, encoded)
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("make the folder of the node's certificates: %w", err)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return fmt.Errorf("write the node's certificates: %w", err)
	}
	return nil
}
