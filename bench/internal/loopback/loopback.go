// Package loopback serves HTTP over TLS on the loopback interface, as an API server does: both
// HTTP/1.1 and HTTP/2, with a certificate of its own authority, and with a kubeconfig file for
// clients.
package loopback

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Server is a running server.
type Server struct {
	kubeconfig string
	server     *http.Server
	cancel     context.CancelFunc
	ended      chan struct{}
}

// Start starts a server that answers with h, and writes its kubeconfig file into the folder dir.
// Requests need the token in that file, because other users of the machine reach the loopback
// interface too. The contexts of requests end with [Server.Close].
func Start(dir string, h http.Handler) (*Server, error) {
	certificate, authority, err := newCertificate()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "the token is not that of the kubeconfig file", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		// KUBECONFIG is a list that colons separate.
		kubeconfig: filepath.Join(dir, fmt.Sprintf("kubeconfig-%d", listener.Addr().(*net.TCPAddr).Port)),
		server: &http.Server{
			Handler:           guarded,
			ReadHeaderTimeout: time.Minute,
			TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}},
			BaseContext:       func(net.Listener) context.Context { return ctx },
			// The programs are killed, so that all of their connections break off.
			ErrorLog: log.New(io.Discard, "", 0),
		},
		cancel: cancel,
		ended:  make(chan struct{}),
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: loopback
  cluster: {server: "https://%s", certificate-authority-data: %s}
users:
- name: loopback
  user: {token: %s}
contexts:
- name: loopback
  context: {cluster: loopback, user: loopback}
current-context: loopback
`, listener.Addr(), base64.StdEncoding.EncodeToString(authority), token)
	if err := os.WriteFile(s.kubeconfig, []byte(text), 0o600); err != nil {
		cancel()
		return nil, errors.Join(err, listener.Close())
	}
	go func() {
		defer close(s.ended)
		_ = s.server.ServeTLS(listener, "", "") // it ends by Close
	}()
	return s, nil
}

// Kubeconfig returns the path of the kubeconfig file.
func (s *Server) Kubeconfig() string { return s.kubeconfig }

// Close ends the server and all requests, and removes the kubeconfig file.
func (s *Server) Close() {
	s.cancel()
	_ = s.server.Close()
	<-s.ended
	_ = os.Remove(s.kubeconfig)
}

// newCertificate returns a certificate for 127.0.0.1, and its authority in PEM. A certificate
// that signed itself would not do: rustls refuses an authority as a server.
func newCertificate() (tls.Certificate, []byte, error) {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback-ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	authorityBytes, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "loopback"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{leafBytes}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityBytes}), nil
}
