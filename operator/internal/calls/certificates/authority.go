package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"
)

const (
	// authorityLifetime is how long a CA is valid after its creation.
	authorityLifetime = 365 * 24 * time.Hour
	// rotationAge is the age at which a CA gets a successor.
	rotationAge = 180 * 24 * time.Hour
	// backdating is how long before its creation a certificate is valid, because clocks differ by up to 30 days.
	backdating = 35 * 24 * time.Hour
	// servingLifetime is how long a serving certificate is valid after its creation.
	servingLifetime = 70 * 24 * time.Hour
	// servingAge is the age at which a serving certificate gets a successor. The certificate is valid for longer than
	// backdating then.
	servingAge = 30 * 24 * time.Hour
	// maxPathLength is how many CA certificates may stand between a CA and a serving certificate. On day 360 there
	// are two: see the package documentation.
	maxPathLength = 2
)

// newAuthority returns the certificate and the key of a new CA that can only sign certificates for n.
func newAuthority(n Names, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{ // the serial number is random, and the key identifier is a hash of the key
		// Verifiers find an issuer by its name.
		Subject:               pkix.Name{CommonName: "yare webhooks " + rand.Text()},
		NotBefore:             now.Add(-backdating),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, // it cannot make certificates of users
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLen:            maxPathLength,
	}
	n.constrain(template)
	c, err := sign(template, template, key.Public(), key)
	return c, key, err
}

// crossSign returns a certificate of the CA c that another CA, issuer, has signed with its key. It has the name and
// the key identifier of c, and ends with the first of both CAs.
func crossSign(c, issuer *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template := *c
	template.SerialNumber = nil // random
	if issuer.NotAfter.Before(c.NotAfter) {
		template.NotAfter = issuer.NotAfter
	}
	return sign(&template, issuer, c.PublicKey, key)
}

// newServing returns a serving certificate for n, with the chain that a server presents: the certificate itself, and
// all cross certificates of s. API servers ignore those that have expired by their clocks.
func newServing(n Names, s *State, now time.Time) (*tls.Certificate, error) {
	if !s.canSign(nil, now) {
		return nil, fmt.Errorf("no CA can sign a certificate for %s", n)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	issuer := s.Authorities[0]
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "yare webhooks"},
		NotBefore:   now.Add(-backdating),
		NotAfter:    now.Add(servingLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(issuer.NotAfter) {
		template.NotAfter = issuer.NotAfter
	}
	n.addTo(template)
	leaf, err := sign(template, issuer, key.Public(), s.Key)
	if err != nil {
		return nil, err
	}
	made := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	for _, cross := range s.Crosses {
		made.Certificate = append(made.Certificate, cross.Raw)
	}
	return made, nil
}

// sign returns the certificate of a template and a public key, signed with the key of issuer.
func sign(template, issuer *x509.Certificate, public any, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	content, err := x509.CreateCertificate(rand.Reader, template, issuer, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(content)
}

// isValid reports whether the time is within the validity of c.
func isValid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && !isExpired(c, now)
}

// isExpired reports whether the time is after the validity of c.
func isExpired(c *x509.Certificate, now time.Time) bool { return now.After(c.NotAfter) }
