// Package loopback serves HTTPS on the loopback interface, as an API server does: with HTTP/1.1 and HTTP/2, with a
// certificate of its own authority, and with tokens, because other users of the machine reach the interface too.
//
//	server, err := loopback.Start(handler)
//	err = os.WriteFile("kubeconfig", server.Kubeconfig(token, "default"), 0o600)
//
// The handler checks the token of each request: see [Token]. [StartWithFile] does all of this.
package loopback

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/kube"
)

// Server is a running server.
type Server struct {
	address string
	// authority is the certificate of the authority in PEM.
	authority []byte
	http      *http.Server
	// serving counts the loop that accepts connections.
	serving sync.WaitGroup
}

// Start starts a server on a free port. The caller calls Close.
func Start(h http.Handler) (*Server, error) {
	certificate, authority, err := NewCertificate(365 * 24 * time.Hour)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{address: "https://" + listener.Addr().String(), authority: authority, http: &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:          log.New(io.Discard, "", 0), // clients are killed while they connect
	}}
	s.serving.Go(func() { _ = s.http.ServeTLS(listener, "", "") }) // it ends with Close
	return s, nil
}

// Close breaks all connections and ends the server. Handlers may still run when Close returns.
func (s *Server) Close() {
	_ = s.http.Close() // nobody needs the listener any more
	s.serving.Wait()
}

// Config returns the configuration of a client in this process whose requests carry a token.
func (s *Server) Config(token string) *kube.Config {
	return &kube.Config{Host: s.address, CAData: s.authority, BearerToken: token}
}

// Kubeconfig returns the content of a kubeconfig file for clients whose requests carry a token. The namespace may
// be empty.
func (s *Server) Kubeconfig(token, namespace string) []byte {
	return Kubeconfig(s.Config(token), namespace)
}

// Kubeconfig returns the content of a kubeconfig file with the Host, the CAData and the BearerToken of c. The
// namespace may be empty.
func Kubeconfig(c *kube.Config, namespace string) []byte {
	type object = map[string]any
	content, err := kube.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "yare",
		"clusters": []any{
			object{"name": "yare", "cluster": object{"server": c.Host, "certificate-authority-data": c.CAData}},
		},
		"users": []any{object{"name": "yare", "user": object{"token": c.BearerToken}}},
		"contexts": []any{
			object{"name": "yare", "context": object{"cluster": "yare", "user": "yare", "namespace": namespace}},
		},
	})
	if err != nil {
		panic(err) // it is plain data
	}
	return content
}

// Token returns the bearer token of a request, or an empty text.
func Token(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// StartWithFile starts a server whose requests need a random token. It writes the kubeconfig file into the folder dir,
// and returns the path of the file. All other requests are answered with 401.
func StartWithFile(dir string, h http.Handler) (s *Server, kubeconfig string, err error) {
	token := rand.Text()
	s, err = Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Token(r) != token {
			http.Error(w, "the token is not that of the kubeconfig file", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	if err != nil {
		return nil, "", err
	}
	// KUBECONFIG is a list that colons separate.
	kubeconfig = filepath.Join(dir, "kubeconfig-"+strings.TrimPrefix(s.address, "https://127.0.0.1:"))
	if err := os.WriteFile(kubeconfig, s.Kubeconfig(token, ""), 0o600); err != nil {
		s.Close()
		return nil, "", err
	}
	return s, kubeconfig, nil
}
