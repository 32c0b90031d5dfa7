package secure

import (
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
)

// Certificates returns the certificate of a handshake, for [tls.Config].
type Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Listen returns a listener that accepts TLS connections from next, for HTTP/1.1.
func Listen(next net.Listener, certificates Certificates) net.Listener {
	return tls.NewListener(next, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: certificates,
	})
}

// FromFiles returns the certificate in two files in PEM, which are read again for each handshake.
// If the files cannot be used at some time, the certificate that they held before stays in use, and
// the reason is logged once.
func FromFiles(certFile, keyFile string, log *slog.Logger) (Certificates, error) {
	first, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards last and isBroken
	last := &first
	isBroken := false // whether the files could not be used at the last handshake
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		switch {
		case err != nil && !isBroken:
			log.Error("the certificate for clients of this program cannot be read again; its last version goes on", "file", certFile, "error", err)
		case err == nil && isBroken:
			log.Info("the certificate for clients of this program can be read again", "file", certFile)
		}
		if isBroken = err != nil; !isBroken {
			last = &pair
		}
		return last, nil
	}, nil
}
