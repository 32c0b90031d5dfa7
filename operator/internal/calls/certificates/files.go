package certificates

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/yare-go/yare/operator/internal/servercert"
)

// Files are a serving certificate and its key in two files, which somebody else renews. It is safe for concurrent
// use.
type Files struct{ certificates servercert.Certificates }

// NewFiles returns the certificate in two files in PEM. Changed files are read again. While they cannot be used, the
// last certificate stays in use, and the reason is logged. It returns an error if the files cannot be used now.
func NewFiles(certFile, keyFile string, log *slog.Logger) (*Files, error) {
	c, err := servercert.FromFiles(certFile, keyFile, log)
	if err != nil {
		return nil, fmt.Errorf("read the certificate that --webhook-cert and --webhook-key give: %w; mount a Secret of the type kubernetes.io/tls, or leave out both flags: then the program makes its certificates itself", err)
	}
	return &Files{c}, nil
}

// GetCertificate returns the certificate, for [tls.Config].
func (f *Files) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.certificates(hello)
}

// Status returns how long the certificate is valid by the clock of this machine. There are no CAs.
func (f *Files) Status() Status {
	c, err := f.certificates(nil)
	if err != nil || c.Leaf == nil {
		return Status{}
	}
	return Status{CertificateLeft: time.Until(c.Leaf.NotAfter)}
}
