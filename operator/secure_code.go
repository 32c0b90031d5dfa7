package operator

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/secure"
)

// secureCodePart is a part that brings the [secureCode]: the part of [SecureListener].
type secureCodePart interface{ secureCode() secureCode }

// secureCode serves the pages of a program over TLS. A program without the part [SecureListener] has no code for TLS for
// servers: see part_code.go.
type secureCode interface {
	// openSecurePages opens the address of --listen-secure. browserPath is that of feature.Pages. client asks the cluster who may read the pages.
	openSecurePages(ctx context.Context, flags listenFlags, browserPath string, client *kube.Client, log *slog.Logger) (securePages, error)
}

// securePages is the open address of --listen-secure.
type securePages struct {
	listener    net.Listener
	readerCheck readerCheck
	// certificateEnd returns when the certificate of the listener expires.
	certificateEnd func() (time.Time, error)
}

// readerCheck returns a handler that serves by next the requests of the readers that may read the pages.
type readerCheck func(next http.Handler) http.Handler

// secureCodeIn returns the code that parts bring, or an error if the program has no part [SecureListener].
func secureCodeIn(parts []Part) (secureCode, error) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(secureCodePart); ok {
			return p.secureCode(), nil
		}
	}
	return nil, errors.New("the program cannot serve over TLS: add operator.SecureListener() to its parts, or use --listen")
}

// linkedSecureCode makes each part that embeds it a [secureCodePart].
type linkedSecureCode struct{}

func (linkedSecureCode) secureCode() secureCode { return programSecureCode{} }

// programSecureCode implements [secureCode].
type programSecureCode struct{}

// openSecurePages opens the address of --listen-secure, with the certificates of the flags.
func (programSecureCode) openSecurePages(ctx context.Context, flags listenFlags, browserPath string, client *kube.Client, log *slog.Logger) (securePages, error) {
	certificates, err := flags.certificates(log)
	if err != nil {
		return securePages{}, err
	}
	listener, err := listen(ctx, flags.secureAddress)
	if err != nil {
		return securePages{}, err
	}
	log.Info("serving health and metrics over TLS", "address", listener.Addr().String())
	authorizer := secure.NewAuthorizer(client, browserPath, log)
	return securePages{
		listener:       secure.Listen(listener, certificates),
		readerCheck:    func(next http.Handler) http.Handler { return authorizer.Handler(next, "/healthz", "/readyz") },
		certificateEnd: certificates.End,
	}, nil
}
