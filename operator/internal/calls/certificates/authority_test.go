package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"
)

const (
	day  = 24 * time.Hour
	name = "web.shop.svc"
)

// names are those of the Service of most tests.
func names() Names { return ServiceNames("web", "shop") }

// begin is when most tests begin.
func begin() time.Time { return time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC) }

// mustNext returns the state that follows from a memory and a Secret.
func mustNext(t *testing.T, memory, stored State, now time.Time) State {
	t.Helper()
	s, err := nextOf(names(), memory, stored, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	return reread(t, s)
}

// nextOf is next with values.
func nextOf(n Names, memory, stored State, learned []*x509.Certificate, now time.Time) (State, error) {
	s, err := nextState(n, &memory, &stored, learned, now)
	if err != nil {
		return State{}, err
	}
	return *s, nil
}

// reread returns s as a replica reads it from the Secret.
func reread(t *testing.T, s State) State {
	t.Helper()
	d, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := decodeState(names(), d)
	if err != nil {
		t.Fatal(err)
	}
	return *read
}

// mustServe returns the serving certificate of a state.
func mustServe(t *testing.T, s State, now time.Time) *tls.Certificate {
	t.Helper()
	c, err := newServing(names(), &s, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verify returns the error of an API server that has a bundle, and is presented a chain.
func verify(bundle []byte, chain [][]byte, serverName string, now time.Time) error {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("the bundle is empty")
	}
	var leaf *x509.Certificate
	for _, content := range chain {
		c, err := x509.ParseCertificate(content)
		if err != nil {
			return err
		}
		if leaf == nil {
			leaf = c
		} else {
			intermediates.AddCert(c)
		}
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: serverName, Roots: roots, Intermediates: intermediates, CurrentTime: now})
	return err
}

// A CA signs for the Service alone. A test signs each forbidden thing with its key.
func TestConstraints(t *testing.T) {
	t.Parallel()
	uri, err := url.Parse("https://web.shop.svc/path")
	if err != nil {
		t.Fatal(err)
	}
	loopbackURI, err := url.Parse("spiffe://web.shop.svc/path")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what     string
		names    Names
		change   func(*x509.Certificate)
		isGood   bool
		verified string // the name that the server asks for, or empty for any
	}{
		{"the Service", names(), func(*x509.Certificate) {}, true, name},
		{"another Service", names(), func(c *x509.Certificate) { c.DNSNames = []string{"db.shop.svc"} }, false, ""},
		{"the Service of another namespace", names(), func(c *x509.Certificate) { c.DNSNames = []string{"web.bank.svc"} }, false, ""},
		{"a further Service", names(), func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "db.shop.svc") }, false, ""},
		{"the API server", names(), func(c *x509.Certificate) { c.DNSNames = []string{"kubernetes.default.svc"} }, false, ""},
		{"a wildcard", names(), func(c *x509.Certificate) { c.DNSNames = []string{"*.shop.svc"} }, false, ""},
		{"an IPv4 address", names(), func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, false, ""},
		{"the loopback address", names(), func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }, false, ""},
		{"an IPv6 address", names(), func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP("fd00::1")} }, false, ""},
		{"an e-mail address", names(), func(c *x509.Certificate) { c.EmailAddresses = []string{"root@web.shop.svc"} }, false, ""},
		{"a foreign e-mail address", names(), func(c *x509.Certificate) { c.EmailAddresses = []string{"root@example.com"} }, false, ""},
		{"a URI", names(), func(c *x509.Certificate) { c.URIs = []*url.URL{uri} }, false, ""},
		{"an identity", names(), func(c *x509.Certificate) { c.URIs = []*url.URL{loopbackURI} }, false, ""},
		{"a user", names(), func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, false, ""},

		{"127.0.0.1", LoopbackNames(), func(*x509.Certificate) {}, true, "127.0.0.1"},
		{"another address", LoopbackNames(), func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }, false, ""},
		{"::1", LoopbackNames(), func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv6loopback} }, false, ""},
		{"localhost", LoopbackNames(), func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} }, false, ""},
		{"a Service in dev", LoopbackNames(), func(c *x509.Certificate) { c.DNSNames = []string{name} }, false, ""},
		{"an e-mail address in dev", LoopbackNames(), func(c *x509.Certificate) { c.EmailAddresses = []string{"root@example.com"} }, false, ""},
		{"a URI in dev", LoopbackNames(), func(c *x509.Certificate) { c.URIs = []*url.URL{uri} }, false, ""},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			s, err := nextOf(test.names, State{}, State{}, nil, begin())
			if err != nil {
				t.Fatal(err)
			}
			template := &x509.Certificate{
				NotBefore: begin().Add(-time.Hour), NotAfter: begin().Add(day), KeyUsage: x509.KeyUsageDigitalSignature,
				ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			}
			test.names.addTo(template)
			test.change(template)
			key := newKey(t)
			leaf, err := sign(template, s.Authorities[0], key.Public(), s.Key)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(s.Authorities[0])
			_, err = leaf.Verify(x509.VerifyOptions{
				DNSName: test.verified, Roots: roots, CurrentTime: begin(),
				KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			})
			if (err == nil) != test.isGood {
				t.Errorf("the verifier returns %v", err)
			}
		})
	}
}

// A verifier that does not know name constraints must refuse the CA. The chain of CAs has a limit.
func TestAuthority(t *testing.T) {
	t.Parallel()
	s := mustNext(t, State{}, State{}, begin())
	c := s.Authorities[0]
	for _, e := range c.Extensions {
		if e.Id.String() == "2.5.29.30" && !e.Critical {
			t.Error("the name constraints are not critical")
		}
	}
	if !c.PermittedDNSDomainsCritical || c.MaxPathLen != 2 || !c.IsCA || c.PublicKey.(*ecdsa.PublicKey).Curve != elliptic.P256() {
		t.Errorf("the CA is %+v", c)
	}
	if !c.NotBefore.Equal(begin().Add(-35*day)) || !c.NotAfter.Equal(begin().Add(365*day)) {
		t.Errorf("it is valid from %s to %s", c.NotBefore, c.NotAfter)
	}
	// Three CAs below the CA are one too many.
	issuer, issuerKey, chain := c, s.Key, [][]byte{}
	for depth := 1; depth <= 3; depth++ {
		template := *c
		template.SerialNumber, template.SubjectKeyId, template.RawSubject = nil, nil, nil
		template.Subject.CommonName = "sub" + string(rune('0'+depth))
		key := newKey(t)
		sub, err := sign(&template, issuer, key.Public(), issuerKey)
		if err != nil {
			t.Fatal(err)
		}
		issuer, issuerKey = sub, key
		chain = append([][]byte{sub.Raw}, chain...)
		below := State{Authorities: []*x509.Certificate{sub}, Key: key}
		err = verify(encodeCertificates(s.Authorities), append([][]byte{mustServe(t, below, begin()).Certificate[0]}, chain...), name, begin())
		if (err == nil) != (depth <= 2) {
			t.Errorf("with %d CAs in between: %v", depth, err)
		}
	}
}

// Each serving certificate begins 35 days early, lasts for 70 days, and has its own key, which nothing else has.
func TestServing(t *testing.T) {
	t.Parallel()
	s := mustNext(t, State{}, State{}, begin())
	first, second := mustServe(t, s, begin()), mustServe(t, s, begin())
	if first.PrivateKey.(*ecdsa.PrivateKey).Equal(second.PrivateKey) || s.Key.Equal(first.PrivateKey) {
		t.Error("two certificates share a key")
	}
	if !first.Leaf.NotAfter.Equal(begin().Add(70*day)) || !first.Leaf.NotBefore.Equal(begin().Add(-35*day)) {
		t.Errorf("it is valid from %s to %s", first.Leaf.NotBefore, first.Leaf.NotAfter)
	}
	if err := verify(encodeCertificates(s.Authorities), first.Certificate, name, begin()); err != nil {
		t.Error(err)
	}
	// It never outlives its CA.
	if late := mustServe(t, s, begin().Add(350*day)); !late.Leaf.NotAfter.Equal(s.Authorities[0].NotAfter) {
		t.Errorf("it ends %s after its CA", late.Leaf.NotAfter.Sub(s.Authorities[0].NotAfter))
	}
	if _, err := newServing(names(), &s, begin().Add(366*day)); err == nil {
		t.Error("an expired CA has signed")
	}
}

// A CA and its cross certificate share a name and a key identifier that no other CA has.
func TestCrossCertificates(t *testing.T) {
	t.Parallel()
	first := mustNext(t, State{}, State{}, begin())
	second := mustNext(t, first, first, begin().Add(180*day))
	if len(second.Authorities) != 2 || len(second.Crosses) != 1 || second.Key.Equal(first.Key) {
		t.Fatalf("after the rotation there are %d CAs and %d cross certificates", len(second.Authorities), len(second.Crosses))
	}
	a, b, cross := second.Authorities[1], second.Authorities[0], second.Crosses[0]
	if !bytes.Equal(b.RawSubject, cross.RawSubject) || !bytes.Equal(b.SubjectKeyId, cross.SubjectKeyId) {
		t.Error("the cross certificate has another name or key identifier")
	}
	if bytes.Equal(a.RawSubject, b.RawSubject) || bytes.Equal(a.SubjectKeyId, b.SubjectKeyId) || len(a.SubjectKeyId) == 0 {
		t.Error("two CAs have one name or key identifier")
	}
	if !bytes.Equal(cross.AuthorityKeyId, a.SubjectKeyId) || !cross.PermittedDNSDomainsCritical || cross.MaxPathLen != 2 || cross.SerialNumber.Cmp(b.SerialNumber) == 0 {
		t.Errorf("the cross certificate is %+v", cross)
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
