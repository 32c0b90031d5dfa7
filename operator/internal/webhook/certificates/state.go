package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// State is what the Secret holds. A State is not changed after its creation.
type State struct {
	// Authorities are the certificates of the CAs, which sign themselves. The newest is the first. They are the
	// bundle. CAs that have expired stay until a CA is added.
	Authorities []*x509.Certificate
	// Key is the key of the first of Authorities. Without a key no CA can sign.
	Key *ecdsa.PrivateKey
	// Crosses are the cross certificates. The CA of the name and the CA of the issuer are in Authorities.
	Crosses []*x509.Certificate
	// Revoked are the certificates of the CAs that were revoked and have not expired.
	Revoked []*x509.Certificate
}

// canSign reports whether the newest CA can sign now.
func (s State) canSign(now time.Time) bool { return s.Key != nil && isValid(s.Authorities[0], now) }

// rotationTime returns when the newest CA gets a successor.
func (s State) rotationTime() time.Time {
	return s.Authorities[0].NotAfter.Add(rotationAge - authorityLifetime)
}

// bundle returns the certificates of all CAs in PEM.
func (s State) bundle() []byte { return encodeCertificates(s.Authorities) }

// withoutRevoked returns s without revoked CAs.
func (s State) withoutRevoked(revoked []*x509.Certificate) State {
	if len(s.Authorities) > 0 && contains(revoked, s.Authorities[0]) {
		s.Key = nil
	}
	s.Authorities = without(s.Authorities, func(c *x509.Certificate) bool { return contains(revoked, c) })
	return s
}

// data is the data of the Secret.
type data struct {
	Authorities []byte `json:"ca.crt"`
	Key         []byte `json:"ca.key"`
	Crosses     []byte `json:"cross.crt"`
	Revoked     []byte `json:"revoked.crt"`
}

// isEqual reports whether d and other are the same.
func (d data) isEqual(other data) bool {
	return bytes.Equal(d.Authorities, other.Authorities) && bytes.Equal(d.Key, other.Key) &&
		bytes.Equal(d.Crosses, other.Crosses) && bytes.Equal(d.Revoked, other.Revoked)
}

// isEmpty reports whether d has nothing, as in the Secret of the manifests.
func (d data) isEmpty() bool { return d.isEqual(data{}) }

const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "EC PRIVATE KEY"
)

// encode returns the data of s. No field is nil, so that an apply has all of them.
func (s State) encode() (data, error) {
	d := data{Authorities: s.bundle(), Key: []byte{}, Crosses: encodeCertificates(s.Crosses), Revoked: encodeCertificates(s.Revoked)}
	if s.Key != nil {
		key, err := x509.MarshalECPrivateKey(s.Key)
		if err != nil {
			return data{}, fmt.Errorf("encode the key of the webhook CA: %w", err)
		}
		d.Key = pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: key})
	}
	return d, nil
}

// decode returns what is usable of the data of a Secret: CAs for n, the key if it is that of the first CA, and cross
// certificates between these CAs. The error describes the rest, without its content. Empty data has an error too.
func (n Names) decode(d data) (State, error) {
	var s State
	all, problem := decodeCertificates("ca.crt", d.Authorities)
	problems := []error{problem}
	for i, c := range all {
		if err := n.check(c); err != nil {
			problems = append(problems, fmt.Errorf("ca.crt: certificate %d: %w", i+1, err))
		} else if !contains(s.Authorities, c) {
			s.Authorities = append(s.Authorities, c)
		}
	}
	switch key, err := decodeKey(d.Key); {
	case len(s.Authorities) == 0:
		problems = append(problems, errors.New("ca.crt has no CA of this program"))
	case err != nil:
		problems = append(problems, fmt.Errorf("ca.key: %w", err))
	case !key.PublicKey.Equal(s.Authorities[0].PublicKey):
		problems = append(problems, errors.New("ca.key is not the key of the first CA in ca.crt"))
	default:
		s.Key = key
	}
	all, problem = decodeCertificates("cross.crt", d.Crosses)
	problems = append(problems, problem)
	for i, c := range all {
		if isCross(c, s.Authorities) {
			s.Crosses = append(s.Crosses, c)
		} else {
			problems = append(problems, fmt.Errorf("cross.crt: certificate %d is not between two CAs in ca.crt", i+1))
		}
	}
	s.Revoked, problem = decodeCertificates("revoked.crt", d.Revoked)
	return s, errors.Join(append(problems, problem)...)
}

// check returns an error if c is not a CA for n alone that has signed itself.
func (n Names) check(c *x509.Certificate) error {
	switch {
	case !c.IsCA || !n.areConstraintsOf(c):
		return fmt.Errorf("it is not the certificate of a CA for %s alone", n)
	case c.CheckSignatureFrom(c) != nil:
		return errors.New("it is not signed by itself")
	}
	return nil
}

// isCross reports whether c is a certificate of one of the CAs that another one of them has signed.
func isCross(c *x509.Certificate, authorities []*x509.Certificate) bool {
	return slices.ContainsFunc(authorities, func(a *x509.Certificate) bool {
		return bytes.Equal(a.RawSubject, c.RawSubject) && bytes.Equal(a.RawSubjectPublicKeyInfo, c.RawSubjectPublicKeyInfo)
	}) && slices.ContainsFunc(authorities, func(a *x509.Certificate) bool {
		return bytes.Equal(a.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(a) == nil
	})
}

func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is empty or not in PEM")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it is not the key of an elliptic curve") // the cause might show a part of the key
	}
	return key, nil
}

// decodeCertificates returns the certificates in text that can be read. name is where text stands.
func decodeCertificates(name string, text []byte) (all []*x509.Certificate, problem error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			if len(bytes.TrimSpace(text)) > 0 {
				problem = fmt.Errorf("%s is not in PEM", name)
			}
			return all, problem
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			problem = fmt.Errorf("%s: %w", name, err)
		} else {
			all = append(all, c)
		}
		text = rest
	}
}

// encodeCertificates returns certificates in PEM. The result is not nil.
func encodeCertificates(all []*x509.Certificate) []byte {
	text := []byte{}
	for _, c := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw})...)
	}
	return text
}

// contains reports whether c is in all.
func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(all, c.Equal)
}

// without returns the certificates for which isDropped returns false.
func without(all []*x509.Certificate, isDropped func(*x509.Certificate) bool) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(all), isDropped)
}

// union returns the certificates of all, and behind them those of the others that are missing and for which
// isDropped returns false.
func union(all, others []*x509.Certificate, isDropped func(*x509.Certificate) bool) []*x509.Certificate {
	all = slices.Clip(all)
	for _, c := range others {
		if !contains(all, c) && !isDropped(c) {
			all = append(all, c)
		}
	}
	return all
}
