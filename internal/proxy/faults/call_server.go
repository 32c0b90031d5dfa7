package faults

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/proxy/loopback"
)

const (
	// disturbanceTime is how long webhooks and conversions do not answer as they should.
	disturbanceTime = 3 * time.Second
	// slowCallDelay is the delay of a call of a slow webhook or conversion.
	slowCallDelay = 2 * time.Second
	// maxDisturbanceRemoval is how long the end of a fault may take: the removal of the copies, or of another conversion.
	maxDisturbanceRemoval = 30 * time.Second
)

// callServer answers the calls of an API server to copies of the webhooks of a program, or in place of its conversions.
// Calls of copies about dry runs, and after the disturbance, are answered without an objection. Calls for conversions
// are forwarded to the program before and after the disturbance. Its methods are safe for concurrent use.
type callServer struct {
	kind     Kind
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
	// trusted is the certificate of the server, and bundle its authority in PEM. untrusted is that of another authority.
	trusted, untrusted tls.Certificate
	bundle             []byte

	mu sync.Mutex
	// targets are the webhooks or conversions of the program. The path of a call is the index of its target.
	targets []callTarget
	// calls counts the calls.
	calls int
	// mayDisturb is true once the disturbance may begin. until is the end of the disturbance, and is zero before its first
	// call.
	mayDisturb bool
	until      time.Time
}

// callTarget is a webhook or a conversion of the program: its URL, and a client that trusts its certificates.
type callTarget struct {
	url    string
	client *http.Client
}

// newCallServer starts a server for a kind of fault on the loopback address. The caller calls close.
func newCallServer(k Kind) (*callServer, error) {
	s := &callServer{kind: k}
	var err error
	if s.trusted, s.bundle, err = loopback.NewCertificate(24 * time.Hour); err != nil {
		return nil, err
	}
	if s.untrusted, _, err = loopback.NewCertificate(24 * time.Hour); err != nil {
		return nil, err
	}
	if s.listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.server = &http.Server{
		Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
		// The disturbance of one connection must not depend on the calls before.
		TLSNextProto: make(map[string]func(*http.Server, *tls.Conn, http.Handler)),
		ErrorLog:     log.New(io.Discard, "", 0), // the API server refuses the untrusted certificate
	}
	s.server.SetKeepAlivesEnabled(false)
	s.serving.Go(func() { _ = s.server.ServeTLS(s.listener, "", "") })
	return s, nil
}

// close cuts all calls off, and returns when nothing of the server runs any more.
func (s *callServer) close() error {
	err := s.server.Close()
	s.serving.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, target := range s.targets {
		target.client.CloseIdleConnections()
	}
	return err
}

// addTarget adds a webhook or a conversion of the program, and returns the URL that stands for it.
func (s *callServer) addTarget(url string, bundle []byte) string {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.targets = append(s.targets, callTarget{url, &http.Client{Transport: transport}})
	return "https://" + s.listener.Addr().String() + "/" + strconv.Itoa(len(s.targets)-1)
}

// hasCalls reports whether the API server has called the server.
func (s *callServer) hasCalls() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0
}

// allowDisturbance lets the disturbance begin with the next call.
func (s *callServer) allowDisturbance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayDisturb = true
}

// beginDisturbance begins the disturbance, unless it has begun, and reports whether it lasts. It lasts until the end of
// the step if it calls webhooks twice.
func (s *callServer) beginDisturbance() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayDisturb {
		return false
	}
	if s.until.IsZero() {
		s.until = time.Now().Add(disturbanceTime)
	}
	return s.kind == WebhookTwice || time.Now().Before(s.until)
}

// hasDisturbanceBegun reports whether the disturbance has begun.
func (s *callServer) hasDisturbanceBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.until.IsZero()
}

// isDisturbanceOver reports whether the disturbance has ended. It knows nothing of [WebhookTwice], whose disturbance
// lasts until the end of the step.
func (s *callServer) isDisturbanceOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.until.IsZero() && time.Now().After(s.until)
}

// certificate returns the certificate of a connection.
func (s *callServer) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if (s.kind == WebhookUntrusted || s.kind == ConversionUntrusted) && s.beginDisturbance() {
		return &s.untrusted, nil
	}
	return &s.trusted, nil
}

// review is an AdmissionReview, as far as the server reads and writes it. See
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response.
type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID    string `json:"uid"`
	DryRun bool   `json:"dryRun"`
}

type reviewResponse struct {
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
}

// maxReview is the most bytes of a call.
const maxReview = 16 << 20

// answer answers a call.
func (s *callServer) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview))
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	isConversion := (conversions{}).Describe().has(s.kind)
	var call review
	if !isConversion {
		if err = cmp.Or(err, json.Unmarshal(body, &call)); err == nil && call.Request == nil {
			err = errors.New("the body is no AdmissionReview")
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	isDisturbed := (isConversion || !call.Request.DryRun) && s.beginDisturbance()
	if isDisturbed {
		switch s.kind {
		case WebhookDown, ConversionDown:
			panic(http.ErrAbortHandler) // it ends the connection
		case WebhookFailing, ConversionFailing:
			http.Error(w, "the webhook fails", http.StatusInternalServerError)
			return
		case WebhookSlow, ConversionSlow:
			if clock.SleepReal(r.Context(), slowCallDelay) != nil {
				return
			}
		}
	}
	if isConversion || isDisturbed && s.kind == WebhookTwice {
		if err := s.forward(w, r, body); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review{
		APIVersion: call.APIVersion, Kind: call.Kind, Response: &reviewResponse{UID: call.Request.UID, Allowed: true},
	})
}

// forward calls the webhook or the conversion of the program, and answers what the program answers.
func (s *callServer) forward(w http.ResponseWriter, r *http.Request, body []byte) error {
	s.mu.Lock()
	targets := s.targets
	s.mu.Unlock()
	index, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	if err != nil || index >= len(targets) {
		return errors.New("there is no webhook at " + r.URL.Path)
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, targets[index].url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.URL.RawQuery = r.URL.RawQuery // it has the timeout of the call
	request.Header.Set("Content-Type", "application/json")
	response, err := targets[index].client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, err = io.Copy(w, response.Body)
	return err
}
