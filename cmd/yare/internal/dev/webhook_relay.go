package dev

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/proxy/loopback"
)

// The environment variables by which an operator with webhooks learns of the relay. Package operator reads them.
const (
	relayURLVariable    = "YARE_WEBHOOKS_URL"
	relayCAVariable     = "YARE_WEBHOOKS_CA"
	relaySocketVariable = "YARE_WEBHOOKS_SOCKET"
)

const (
	// pauseTimeout is how long pause waits for calls. The operator answers the remaining calls while it ends.
	pauseTimeout = 2 * time.Second
	// maxCallWait is how long a call waits for an operator that ended by itself. It is less than the timeout of a webhook,
	// which is 10 s.
	maxCallWait = 8 * time.Second
	// relayLifetime is how long the certificates are valid.
	relayLifetime = tokenDuration
)

// webhookRelay takes the calls of the API server to the webhooks of the operator, and forwards them to the process of
// the operator, by a Unix socket. The address stays the same for the whole session. While no operator listens on the
// socket, the relay answers 503 with Retry-After: the API server repeats the call, and the user's kubectl waits.
//
// For example, kubectl applies an object at second 3, while the operator is restarted. The API server calls at second 3
// and gets the answer 503. The new operator listens at second 3.4. The API server calls again at second 4, and kubectl
// prints the answer of the operator. The API server gives up after the timeout of the webhook, which is 10 s.
//
// A session has a relay whether or not the operator has webhooks: the relay costs no process and no measurable time,
// and the first webhook of an operator may come with the next save.
type webhookRelay struct {
	url string
	// caFile is the path of a file with the CA in PEM.
	caFile string
	*forwarder

	mu sync.Mutex
	// isPaused is true while the relay forwards nothing.
	isPaused bool
	// absence is why no operator runs, until absenceEnd at least. It is empty if the operator runs, or is being started.
	absence    string
	absenceEnd time.Time
	// callCount is the number of calls that are being forwarded. idle is closed and made anew when callCount becomes 0.
	callCount int
	idle      chan struct{}
}

// newWebhookRelay starts a relay whose files lie in folder.
func newWebhookRelay(folder string) (*webhookRelay, error) {
	serving, ca, err := loopback.NewCertificate(relayLifetime)
	if err != nil {
		return nil, err
	}
	forwarder, err := newForwarder(filepath.Join(folder, "webhooks"))
	if err != nil {
		return nil, err
	}
	caFile := filepath.Join(folder, "webhooks-ca.pem")
	if err := os.WriteFile(caFile, ca, 0o600); err != nil {
		_ = forwarder.listener.Close() // it has no requests yet
		return nil, err
	}
	relay := &webhookRelay{
		url: "https://" + forwarder.address, caFile: caFile, forwarder: forwarder, idle: make(chan struct{}),
	}
	// A connection serves one call. So no call meets a connection that the operator is closing.
	transport := &http.Transport{DisableKeepAlives: true, DialContext: relay.dial}
	forwarder.start(relay.gate, transport, relay.reportFailure,
		&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving}})
	return relay, nil
}

// close ends the relay. relay may be nil.
func (relay *webhookRelay) close() {
	if relay != nil {
		relay.forwarder.close()
	}
}

// environment returns the variables for the operator. relay may be nil.
func (relay *webhookRelay) environment() []string {
	if relay == nil {
		return nil
	}
	return []string{
		relayURLVariable + "=" + relay.url, relayCAVariable + "=" + relay.caFile, relaySocketVariable + "=" + relay.socket,
	}
}

// errNotListening is the error of a call that nobody has taken.
var errNotListening = errors.New("the operator is not running: yare dev starts it again")

// dial connects to the operator.
func (relay *webhookRelay) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := relay.forwarder.dial(ctx, network, address)
	if err != nil {
		return nil, errNotListening
	}
	return c, nil
}

// gate returns a handler that forwards calls by next, unless the relay is paused.
func (relay *webhookRelay) gate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !relay.beginCall() {
			relay.reportFailure(w, r, errNotListening)
			return
		}
		defer relay.endCall()
		next.ServeHTTP(w, r)
	})
}

// beginCall counts a call. It returns false, and counts nothing, if the relay is paused.
func (relay *webhookRelay) beginCall() bool {
	relay.mu.Lock()
	defer relay.mu.Unlock()
	if relay.isPaused {
		return false
	}
	relay.callCount++
	return true
}

// endCall ends a call that beginCall has counted.
func (relay *webhookRelay) endCall() {
	relay.mu.Lock()
	defer relay.mu.Unlock()
	if relay.callCount--; relay.callCount == 0 {
		close(relay.idle)
		relay.idle = make(chan struct{})
	}
}

// pause stops the forwarding, because the operator is about to end, and waits a moment for the calls that are being
// answered. Without the pause, a call that the operator has not taken yet would be lost with the operator's socket.
// relay may be nil.
func (relay *webhookRelay) pause() {
	if relay == nil {
		return
	}
	relay.mu.Lock()
	relay.isPaused = true
	count, idle := relay.callCount, relay.idle
	relay.mu.Unlock()
	if count > 0 {
		select {
		case <-idle:
		case <-time.After(pauseTimeout):
		}
	}
}

// resume forwards calls again, to an operator that is about to start. It removes the socket that a killed operator
// left. relay may be nil.
func (relay *webhookRelay) resume() {
	if relay == nil {
		return
	}
	_ = os.Remove(relay.socket) // the operator reports a socket that cannot be made
	relay.mu.Lock()
	defer relay.mu.Unlock()
	relay.isPaused, relay.absence = false, ""
}

// recordAbsence records that the operator has ended by itself, and is started again after d at the earliest. A call
// that would wait for too long gets reason as its answer. relay may be nil.
func (relay *webhookRelay) recordAbsence(d time.Duration, reason string) {
	if relay == nil {
		return
	}
	relay.mu.Lock()
	defer relay.mu.Unlock()
	relay.absence, relay.absenceEnd = reason, time.Now().Add(d)
}

// longAbsence returns why a call need not wait for the operator, or an empty text.
func (relay *webhookRelay) longAbsence() string {
	relay.mu.Lock()
	defer relay.mu.Unlock()
	if time.Until(relay.absenceEnd) < maxCallWait {
		return ""
	}
	return relay.absence
}

// reportFailure answers a call that the operator has not answered. The API server repeats a call only if the operator
// has not taken the call.
func (relay *webhookRelay) reportFailure(w http.ResponseWriter, _ *http.Request, err error) {
	if !errors.Is(err, errNotListening) {
		http.Error(w, "the operator ended before it answered: "+err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Connection", "close")
	if reason := relay.longAbsence(); reason != "" {
		http.Error(w, reason, http.StatusBadGateway)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
