// Package servercert returns the certificates of the servers of a program: from two files, or self-signed.
package servercert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Certificates returns the certificate of a handshake, for [tls.Config].
type Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// End returns when the certificate of a handshake at this moment expires.
func (c Certificates) End() (time.Time, error) {
	certificate, err := c(nil)
	if err != nil {
		return time.Time{}, err
	}
	leaf := certificate.Leaf
	if leaf == nil {
		leaf, err = x509.ParseCertificate(certificate.Certificate[0])
	}
	if err != nil {
		return time.Time{}, err
	}
	return leaf.NotAfter, nil
}

// Listen returns a listener that accepts TLS connections from next, for HTTP/1.1.
func Listen(next net.Listener, certificates Certificates) net.Listener {
	return tls.NewListener(next, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: certificates,
	})
}

// FromFiles returns the certificate in two files in PEM. A handshake reads the files, and parses them if they have
// changed. If the files cannot be used at some time, the certificate that they held before stays in use, and
// the reason is logged once.
func FromFiles(certFile, keyFile string, log *slog.Logger) (Certificates, error) {
	files := &keyPairFiles{certFile: certFile, keyFile: keyFile, log: log}
	if err := files.readLocked(); err != nil { // nobody else has the files yet
		return nil, err
	}
	return files.current, nil
}

// keyPairFiles are the two files of a certificate.
type keyPairFiles struct {
	certFile, keyFile string
	log               *slog.Logger

	mu sync.Mutex
	// cert and key are the contents of the files from which last was made.
	cert, key []byte
	last      *tls.Certificate
	// isBroken is true if the files could not be used at the last handshake.
	isBroken bool
}

// current returns the certificate in the files or, if they cannot be used, the last one.
func (f *keyPairFiles) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.readLocked()
	if err != nil {
		err = f.readLocked() // the files may have been replaced between the two reads
	}
	switch {
	case err != nil && !f.isBroken:
		f.log.Error("the certificate for clients of this program cannot be read again; its last version goes on",
			"file", f.certFile, "error", err)
	case err == nil && f.isBroken:
		f.log.Info("the certificate for clients of this program can be read again", "file", f.certFile)
	}
	f.isBroken = err != nil
	return f.last, nil
}

// readLocked reads the files.
func (f *keyPairFiles) readLocked() error {
	cert, err := os.ReadFile(f.certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(f.keyFile)
	if err != nil {
		return err
	}
	if f.last != nil && bytes.Equal(cert, f.cert) && bytes.Equal(key, f.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", f.certFile, f.keyFile, err)
	}
	f.cert, f.key, f.last = cert, key, &pair
	return nil
}
