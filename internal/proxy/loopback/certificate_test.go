package loopback

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/testkit/testcert"
)

// The authority of a webhook relay is trusted by an API server. Nobody can use it for another name.
func TestAuthority(t *testing.T) {
	t.Parallel()
	serving, text, err := NewCertificate(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	own, err := x509.ParseCertificate(serving.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := own.Verify(x509.VerifyOptions{Roots: pool, DNSName: "127.0.0.1"}); err != nil {
		t.Errorf("127.0.0.1: %v", err)
	}
	if _, err := own.Verify(x509.VerifyOptions{Roots: pool, DNSName: "localhost"}); err == nil {
		t.Error("the certificate serves localhost")
	}
	// The key of the authority is thrown away. A new authority with the same constraints shows what it could sign.
	template := *authority
	template.SubjectKeyId, template.AuthorityKeyId = nil, nil
	twin := testcert.New(t, template, nil)
	twins := x509.NewCertPool()
	twins.AddCert(twin.Leaf)
	for _, test := range []struct {
		name      string
		leaf      x509.Certificate
		isAllowed bool
	}{
		{"127.0.0.1", x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, true},
		{"127.0.0.2", x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)}}, false},
		{"::1", x509.Certificate{IPAddresses: []net.IP{net.IPv6loopback}}, false},
		{"a DNS name", x509.Certificate{DNSNames: []string{"kubernetes.default.svc"}}, false},
		{"an e-mail address", x509.Certificate{EmailAddresses: []string{"a@example.com"}}, false},
	} {
		test.leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		leaf := testcert.New(t, test.leaf, twin).Leaf
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: twins}); (err == nil) != test.isAllowed {
			t.Errorf("%s: %v, want allowed %t", test.name, err, test.isAllowed)
		}
	}
}
