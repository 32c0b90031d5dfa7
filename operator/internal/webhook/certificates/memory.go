package certificates

import (
	"crypto/tls"
	"time"
)

// InMemory returns a serving certificate for n by a CA that is in memory only, and the bundle with the CA. Both are for
// one process of a test or of yare dev: the certificate is valid for 70 days, and nobody renews it.
func InMemory(n Names) (serving *tls.Certificate, bundle []byte, err error) {
	now := time.Now()
	s, err := rotate(n, new(State), now)
	if err != nil {
		return nil, nil, err
	}
	serving, err = newServing(n, s, now)
	return serving, encodeCertificates(s.Authorities), err
}
