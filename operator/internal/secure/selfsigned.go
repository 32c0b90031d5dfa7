package secure

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"time"
)

// The tags of DER (ITU-T X.690) that a certificate consists of.
const (
	tagInteger         = 0x02
	tagBitString       = 0x03
	tagOctetString     = 0x04
	tagOID             = 0x06
	tagUTF8String      = 0x0c
	tagUTCTime         = 0x17
	tagGeneralizedTime = 0x18
	tagSequence        = 0x30
	tagSet             = 0x31
	// tagDNSName is the tag of a name in a subjectAltName.
	tagDNSName = 0x82
	// tagVersion and tagExtensions are the tags of fields of a certificate.
	tagVersion, tagExtensions = 0xa0, 0xa3
)

// generate returns a certificate for serving, for these names, that is valid from now on (RFC 5280).
// x509.CreateCertificate would do the same, and enlarge a program by 60 KB.
func generate(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	serial := make([]byte, 16)
	_, _ = rand.Read(serial)          // it never fails
	serial[0] = serial[0]&0x7f | 0x40 // a positive number without leading zeros
	var alternatives [][]byte
	for _, name := range names {
		alternatives = append(alternatives, der(tagDNSName, []byte(name)))
	}
	ecdsaWithSHA256 := der(tagSequence, der(tagOID, []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02}))
	commonName := der(tagSequence, der(tagOID, []byte{0x55, 0x04, 0x03}), der(tagUTF8String, []byte(names[0])))
	distinguishedName := der(tagSequence, der(tagSet, commonName))
	publicKey := der(tagSequence,
		der(tagSequence,
			der(tagOID, []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01}),        // id-ecPublicKey
			der(tagOID, []byte{0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07})), // prime256v1
		bitString(0, point))
	content := der(tagSequence,
		der(tagVersion, der(tagInteger, []byte{2})), // version 3
		der(tagInteger, serial),
		ecdsaWithSHA256,
		distinguishedName, // the issuer
		der(tagSequence, validity(now.Add(-clockSkew)), validity(now.Add(certificateLifetime))),
		distinguishedName, // the subject
		publicKey,
		der(tagExtensions, der(tagSequence,
			extension(15, bitString(7, []byte{0x80})),                                                              // keyUsage: digitalSignature
			extension(17, der(tagSequence, alternatives...)),                                                       // subjectAltName
			extension(37, der(tagSequence, der(tagOID, []byte{0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01})))))) // extKeyUsage: serverAuth
	digest := sha256.Sum256(content)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{
		Certificate: [][]byte{der(tagSequence, content, ecdsaWithSHA256, bitString(0, signature))},
		PrivateKey:  key,
	}, nil
}

// der returns the DER of a value that consists of parts, which together have less than 64 KiB.
func der(tag byte, parts ...[]byte) []byte {
	content := bytes.Join(parts, nil)
	n := len(content)
	header := []byte{tag, byte(n)}
	switch {
	case n >= 0x100:
		header = []byte{tag, 0x82, byte(n >> 8), byte(n)}
	case n >= 0x80:
		header = []byte{tag, 0x81, byte(n)}
	}
	return append(header, content...)
}

// bitString returns the DER of bits. unused is the number of unused bits in the last byte.
func bitString(unused byte, bits []byte) []byte { return der(tagBitString, []byte{unused}, bits) }

// extension returns the DER of an extension, by the last number of its identifier in id-ce.
func extension(id byte, value []byte) []byte {
	return der(tagSequence, der(tagOID, []byte{0x55, 0x1d, id}), der(tagOctetString, value))
}

// validity returns the DER of a time to the second. RFC 5280 has another form for each half of the
// century.
func validity(t time.Time) []byte {
	t = t.UTC()
	if t.Year() < 2050 {
		return der(tagUTCTime, []byte(t.Format("060102150405Z")))
	}
	return der(tagGeneralizedTime, []byte(t.Format("20060102150405Z")))
}
