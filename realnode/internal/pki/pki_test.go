package pki

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// The files of a certificate and its key belong together, and the authority has signed them for their usage.
func TestWrittenCertificateIsVerified(t *testing.T) {
	t.Parallel()
	now := time.Now()
	authority, key, err := pkiutil.NewCertificateAuthority(config(cert.Config{CommonName: "yare-node"}, now))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "pki")
	certFile, keyFile := filepath.Join(folder, "kubelet.crt"), filepath.Join(folder, "kubelet.key")
	err = write(certFile, keyFile, authority, key, config(cert.Config{
		CommonName: "node", AltNames: cert.AltNames{DNSNames: []string{"node"}}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, now))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: "node", Roots: roots, CurrentTime: now.Add(-skew / 2)}); err != nil {
		t.Error(err)
	}
}
