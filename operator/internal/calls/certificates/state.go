package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
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

// canSign reports whether the newest CA can sign now, and is not revoked.
func (s *State) canSign(revoked []*x509.Certificate, now time.Time) bool {
	return s.Key != nil && isValid(s.Authorities[0], now) && !contains(revoked, s.Authorities[0])
}

// hasSuccessor reports whether the CA authority has signed a later CA of s.
func (s *State) hasSuccessor(authority *x509.Certificate) bool {
	return slices.ContainsFunc(s.Crosses,
		func(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, authority.RawSubject) })
}

// isPredecessor reports whether the CA authority has signed the CA successor.
func (s *State) isPredecessor(authority, successor *x509.Certificate) bool {
	return slices.ContainsFunc(s.Crosses, func(c *x509.Certificate) bool {
		return bytes.Equal(c.RawIssuer, authority.RawSubject) && bytes.Equal(c.RawSubject, successor.RawSubject)
	})
}

// rotationTime returns when the newest CA gets a successor.
func (s *State) rotationTime() time.Time {
	return s.Authorities[0].NotAfter.Add(rotationAge - authorityLifetime)
}

// data is the data of the Secret.
type data struct {
	Authorities []byte `json:"ca.crt"` // the bundle
	Key         []byte `json:"ca.key"`
	Crosses     []byte `json:"cross.crt"`
	Revoked     []byte `json:"revoked.crt"`
}

// isEqual reports whether d and other are the same.
func (d data) isEqual(other data) bool {
	return bytes.Equal(d.Authorities, other.Authorities) && bytes.Equal(d.Key, other.Key) &&
		bytes.Equal(d.Crosses, other.Crosses) && bytes.Equal(d.Revoked, other.Revoked)
}

// encode returns the data of s. No field is nil, so that an apply has all of them.
func (s *State) encode() (data, error) {
	d := data{encodeCertificates(s.Authorities), []byte{}, encodeCertificates(s.Crosses), encodeCertificates(s.Revoked)}
	if s.Key == nil {
		return d, nil
	}
	key, err := x509.MarshalECPrivateKey(s.Key)
	d.Key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})
	return d, err
}

// decodeState returns what is usable of the data of a Secret: CAs for n, the key if it is that of the first CA, and
// cross certificates between these CAs. The error describes what is missing, without the content. Empty data has an
// error too.
func decodeState(n Names, d data) (*State, error) {
	s := &State{
		Authorities: filter(decodeCertificates(d.Authorities), n.isAuthority), Revoked: decodeCertificates(d.Revoked),
	}
	s.Crosses = crossesOf(decodeCertificates(d.Crosses), s.Authorities)
	if len(s.Authorities) == 0 {
		return s, errors.New("ca.crt has no CA for the Service of this program")
	}
	if block, _ := pem.Decode(d.Key); block != nil {
		key, err := x509.ParseECPrivateKey(block.Bytes) // the error might show a part of the key
		if err == nil && key.PublicKey.Equal(s.Authorities[0].PublicKey) {
			s.Key = key
			return s, nil
		}
	}
	return s, errors.New("ca.key is not the key of the first CA in ca.crt")
}

// crossesOf returns the certificates that are cross certificates: certificates of one of the CAs that another one of
// them has signed.
func crossesOf(all, authorities []*x509.Certificate) []*x509.Certificate {
	return filter(all, func(c *x509.Certificate) bool {
		hasSubject, hasIssuer := false, false
		for _, a := range authorities {
			hasSubject = hasSubject || bytes.Equal(a.RawSubject, c.RawSubject)
			hasIssuer = hasIssuer || bytes.Equal(a.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(a) == nil
		}
		return hasSubject && hasIssuer
	})
}

// decodeCertificates returns the certificates in text that can be read.
func decodeCertificates(text []byte) (all []*x509.Certificate) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return all
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
		text = rest
	}
}

// encodeCertificates returns certificates in PEM. The result is not nil.
func encodeCertificates(all []*x509.Certificate) []byte {
	text := []byte{}
	for _, c := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

// contains reports whether c is in all.
func contains(all []*x509.Certificate, c *x509.Certificate) bool {
	return slices.ContainsFunc(all, c.Equal)
}

// filter returns the certificates for which isKept returns true.
func filter(all []*x509.Certificate, isKept func(*x509.Certificate) bool) (kept []*x509.Certificate) {
	for _, c := range all {
		if isKept(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

// union returns the certificates of all lists, each once.
func union(lists ...[]*x509.Certificate) (all []*x509.Certificate) {
	for _, list := range lists {
		for _, c := range list {
			if !contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}
