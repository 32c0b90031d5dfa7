package operator

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/secure"
)

// secureMetricsAccess returns the permissions that a program needs for --listen-secure, beside those
// of its parts: to ask the cluster who sends a request, and what they may do.
func secureMetricsAccess() []kube.Access {
	return []kube.Access{
		{Resource: secure.TokenReviews(), Verbs: []kube.Verb{kube.VerbCreate}},
		{Resource: secure.SubjectAccessReviews(), Verbs: []kube.Verb{kube.VerbCreate}},
	}
}

// open opens the address of --listen or --listen-secure. Without either, the listener is nil. The
// guard is nil unless the listener is secure.
func (l *commandLine) open(ctx context.Context, config *kube.Config, connection *connectionReporter, log *slog.Logger) (net.Listener, *secure.Guard, error) {
	switch {
	case l.listen != "":
		listener, err := listen(ctx, l.listen)
		if err == nil {
			log.Info("serving health and metrics", "address", listener.Addr().String())
		}
		return listener, nil, err
	case l.listenSecure == "":
		return nil, nil, nil
	}
	certificates, err := l.certificates(log)
	if err != nil {
		return nil, nil, err
	}
	// The guard has a client of its own. It asks also while the program's client may write nothing,
	// as that of a standby, or is busy.
	client, err := kube.NewClient(config)
	if err != nil {
		return nil, nil, err
	}
	listener, err := listen(ctx, l.listenSecure)
	if err != nil {
		return nil, nil, err
	}
	log.Info("serving health and metrics over TLS", "address", listener.Addr().String())
	return secure.Listen(listener, certificates), secure.NewGuard(client.With(connection.handler), log), nil
}

// certificates returns the certificates of --tls-cert or, without that flag, self-signed ones.
func (l *commandLine) certificates(log *slog.Logger) (secure.Certificates, error) {
	if l.tlsCert != "" {
		certificates, err := secure.FromFiles(l.tlsCert, l.tlsKey, log)
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
