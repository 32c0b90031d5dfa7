package operator

import (
	"context"
	"log/slog"
	"net"

	"github.com/yare-go/yare/internal/feature"
)

// listenFlags are the flags about the pages that the program serves.
type listenFlags struct {
	// address is where the program serves all its pages, and probesAddress is where it serves its health alone. Each may
	// be empty.
	address, probesAddress string
}

// listeners are the open addresses of a program.
type listeners struct {
	// pages takes requests for all pages, and probes takes requests for the health alone. Each may be nil.
	pages, probes net.Listener
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

// open opens the addresses of --listen and --listen-probes. With an error, none is open.
func (f listenFlags) open(ctx context.Context, log *slog.Logger) (l listeners, err error) {
	if f.probesAddress != "" {
		if l.probes, err = feature.Listen(ctx, "--listen-probes", f.probesAddress); err != nil {
			return listeners{}, err
		}
		log.Info("serving health", "address", l.probes.Addr().String())
	}
	if f.address != "" {
		if l.pages, err = feature.Listen(ctx, "--listen", f.address); err != nil {
			l.close()
			return listeners{}, err
		}
		log.Info("serving health and metrics", "address", l.pages.Addr().String())
	}
	return l, nil
}
