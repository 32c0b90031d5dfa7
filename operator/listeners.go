package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/secure"
)

// listenFlags are the flags about the pages that the program serves.
type listenFlags struct {
	// At most one of address and secureAddress is set. Without either there is no listener.
	address, secureAddress string
	// probesAddress is where the program serves its health alone, or empty.
	probesAddress string
	// tlsCert and tlsKey are the files of the certificate of secureAddress. Both are set, or none.
	tlsCert, tlsKey string
}

// listeners are the open addresses of a program.
type listeners struct {
	// pages takes requests for all pages, and probes takes requests for the health alone. Each may be nil.
	pages, probes net.Listener
	// readerCheck checks the requests to pages, except those for the health. It is nil unless pages is secure.
	readerCheck readerCheck
	// certificateEnd returns when the certificate of pages expires. It is nil unless pages is secure.
	certificateEnd func() (time.Time, error)
}

// isEmpty reports whether no address is open.
func (l listeners) isEmpty() bool { return l.pages == nil && l.probes == nil }

// close closes the listeners. A listener that its server has closed already stays closed.
func (l listeners) close() {
	for _, listener := range []net.Listener{l.pages, l.probes} {
		if listener != nil {
			_ = listener.Close()
		}
	}
}

// open opens the addresses of --listen or --listen-secure, and of --listen-probes. With an error, none is open. browserPath is that of
// the features.
func (f listenFlags) open(ctx context.Context, parts []Part, browserPath string, config *kube.Config, problems *problemReporter, log *slog.Logger) (l listeners, err error) {
	defer func() {
		if err != nil {
			l.close()
			l = listeners{}
		}
	}()
	if f.probesAddress != "" {
		if l.probes, err = listen(ctx, f.probesAddress); err != nil {
			return l, err
		}
		log.Info("serving health", "address", l.probes.Addr().String())
	}
	switch {
	case f.address != "":
		if l.pages, err = listen(ctx, f.address); err == nil {
			log.Info("serving health and metrics", "address", l.pages.Addr().String())
		}
		return l, err
	case f.secureAddress == "":
		return l, nil
	}
	code, err := secureCodeIn(parts)
	if err != nil {
		return l, err
	}
	client, err := newAuthorizerClient(config, problems)
	if err != nil {
		return l, err
	}
	opened, err := code.openSecurePages(ctx, f, browserPath, client, log)
	l.pages, l.readerCheck, l.certificateEnd = opened.listener, opened.readerCheck, opened.certificateEnd
	return l, err
}

// certificates returns the certificates of --tls-cert or, without that flag, self-signed ones.
func (f listenFlags) certificates(log *slog.Logger) (secure.Certificates, error) {
	if f.tlsCert != "" {
		certificates, err := secure.FromFiles(f.tlsCert, f.tlsKey, log)
		if err != nil {
			return nil, fmt.Errorf("read the certificate that --tls-cert and --tls-key give: %w", err)
		}
		return certificates, nil
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	return secure.SelfSigned(names...), nil
}

// listen opens an address, such as :8080. Requests may arrive from then on. They are answered
// after [serve].
func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, listenError("--listen, --listen-secure or --listen-probes", err)
	}
	return listener, nil
}

// listenError returns the error of an address that flags give. It explains a taken port, which users meet most.
func listenError(flags string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on the address that %s gives: another program has the port: end that program, or give another port: %w", flags, err)
	}
	return fmt.Errorf("listen on the address that %s gives: %w", flags, err)
}
