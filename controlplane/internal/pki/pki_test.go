package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// A client verifies the serving certificate, and a server the client certificate, also at the moment of their making
// on a machine whose clock is slow.
func TestCertificatesAreVerified(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ca, err := NewAuthority("yare", now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.PEM) {
		t.Fatalf("the authority is no certificate: %s", ca.PEM)
	}
	server, err := ca.Server("kube-apiserver", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}, now)
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client("admin", []string{"system:masters"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []struct {
		pair  Pair
		name  string
		usage x509.ExtKeyUsage
	}{
		{server, "localhost", x509.ExtKeyUsageServerAuth},
		{server, "127.0.0.1", x509.ExtKeyUsageServerAuth},
		{client, "", x509.ExtKeyUsageClientAuth},
	} {
		pair, err := tls.X509KeyPair(each.pair.Certificate, each.pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{now.Add(-skew / 2), now.Add(lifetime / 2)} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: each.name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{each.usage}, CurrentTime: at}); err != nil {
				t.Errorf("%s at %s: %v", pair.Leaf.Subject, at, err)
			}
		}
	}
	pair, err := tls.X509KeyPair(client.Certificate, client.Key)
	if err != nil || pair.Leaf.Subject.CommonName != "admin" || len(pair.Leaf.Subject.Organization) != 1 {
		t.Errorf("the user is %v: %v", pair.Leaf.Subject, err)
	}
}

func TestSigningKey(t *testing.T) {
	t.Parallel()
	private, public, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyutil.ParsePrivateKeyPEM(private); err != nil {
		t.Error(err)
	}
	if keys, err := keyutil.ParsePublicKeysPEM(public); err != nil || len(keys) != 1 {
		t.Errorf("the public half has %d keys: %v", len(keys), err)
	}
}
