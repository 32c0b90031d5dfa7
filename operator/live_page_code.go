package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"time"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube/wire"
)

// livePageCodePart is a part that brings the [livePageCode]: the part of [LivePage].
type livePageCodePart interface{ livePageCode() livePageCode }

// livePageCode serves the live page of a program. A program without the part [LivePage] has no code for the page: see
// part_code.go.
type livePageCode interface {
	// openLivePage returns the live page. It opens the socket of yare dev, if there is one.
	openLivePage(ctx context.Context, s livePageSettings) (livePageService, error)
}

// livePageCodeIn returns the code that parts bring, or an error if the program has no part [LivePage].
func livePageCodeIn(parts []Part) (livePageCode, error) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(livePageCodePart); ok {
			return p.livePageCode(), nil
		}
	}
	return nil, errors.New("the program has no live page: add operator.LivePage() to its parts, or leave out --live-page")
}

// linkedLivePageCode makes each part that embeds it a [livePageCodePart].
type linkedLivePageCode struct{}

func (linkedLivePageCode) livePageCode() livePageCode { return programLivePageCode{} }

// programLivePageCode implements [livePageCode].
type programLivePageCode struct{}

// openLivePage returns the live page. It opens the socket of yare dev, if there is one.
func (programLivePageCode) openLivePage(ctx context.Context, s livePageSettings) (livePageService, error) {
	p := &servedLivePage{livePageSettings: s}
	if s.socket == "" {
		return p, nil
	}
	_ = os.Remove(s.socket) // a process that was killed leaves it
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", s.socket)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket that %s names: %w", livePageSocketVariable, err)
	}
	p.listener = listener
	return p, nil
}

// livePageService is the live page of a program.
type livePageService interface {
	// wrapObserver returns the observer of the controllers. It records for the page what it receives, and passes it to next,
	// which may be nil. It is called once.
	wrapObserver(next controller.Observer) controller.Observer
	// start begins to serve by rt, and adds the page to pages if the flag is given. It is called after wrapObserver.
	start(rt livePageRuntime, pages *pages) error
	// end ends the page. A second call does nothing.
	end()
}

// livePageSettings are what is known of the page before the client of the program is there.
type livePageSettings struct {
	// isOn is true if the flag is given.
	isOn bool
	// socket is the path of the socket of yare dev, or empty.
	socket string
	// isLoopback is true if the pages of the program are served on loopback only, without a check of the reader.
	isLoopback bool
	program    string
	log        *slog.Logger
}

// livePageRuntime is what a program lends to its page while it runs.
type livePageRuntime struct {
	cache      *cache.Cache
	uncached   func() []follow.StreamState
	reconciled []wire.Resource
	// leadership returns whether the replica leads, in words. It is empty without leader election.
	leadership func() string
	// unreadyReasons returns why the program is not ready.
	unreadyReasons func() []string
	// pagesCertificateEnd returns when the certificate of the pages ends. It is nil without a certificate.
	pagesCertificateEnd func() (time.Time, error)
	webhooks            webhookService
	// fail ends the program with an error.
	fail func(error)
}

// certificateEnds returns when the certificates of the program end, by what they are for.
func (rt livePageRuntime) certificateEnds() map[string]time.Time {
	ends := make(map[string]time.Time)
	maps.Copy(ends, rt.webhooks.certificateEnds())
	if rt.pagesCertificateEnd != nil {
		if end, err := rt.pagesCertificateEnd(); err == nil {
			ends["the pages"] = end
		}
	}
	return ends
}

// openLivePageService opens the live page of parts, if the flag or yare dev asks for the page. It reports false if nobody asks, or
// if yare dev asks for the page of a program without one.
func openLivePageService(ctx context.Context, parts []Part, s livePageSettings) (page livePageService, isOpen bool, err error) {
	code, err := livePageCodeIn(parts)
	switch {
	case err != nil && s.isOn:
		return nil, false, err
	case err != nil || !s.isOn && s.socket == "":
		return nil, false, nil
	}
	page, err = code.openLivePage(ctx, s)
	return page, err == nil, err
}
