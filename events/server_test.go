package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// server is a fake API server that keeps events.
type server struct {
	*fakeserver.Server
	since time.Time
}

func newServer() *server { return &server{fakeserver.New(), time.Now()} }

// failIf makes the server answer a request with the error that f returns, if it returns one.
func (s *server) failIf(f func(r *wire.Request) error) {
	s.Before(func(_ context.Context, r *wire.Request) error { return f(r) })
}

// requests returns the requests so far: their time since the start, and what became of them.
func (s *server) requests(t *testing.T) (lines []string) {
	t.Helper()
	for _, each := range s.Requests() {
		line := fmt.Sprintf("%s %s", each.At.Sub(s.since), each.Request.Verb)
		switch err := each.Err; {
		case kube.IsNotFound(err):
			line += " not found"
		case kube.IsAlreadyExists(err):
			line += " exists"
		case err != nil:
			line += " failed"
		default:
			if e := decodeEvent(t, each.Request.Body); e.Series != nil {
				line += fmt.Sprint(" x", e.Series.Count)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *server) check(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(s.requests(t), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the requests:\n%s\nnot:\n%s", got, strings.Join(want, "\n"))
	}
}

// events returns the events of the server.
func (s *server) events(t *testing.T) (all []*eventsv1.Event) {
	t.Helper()
	for _, content := range s.Objects("events") {
		b, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decodeEvent(t, b))
	}
	return all
}

// onlyEvent returns the event of the server, which must have exactly one.
func (s *server) onlyEvent(t *testing.T) *eventsv1.Event {
	t.Helper()
	all := s.events(t)
	if len(all) != 1 {
		t.Fatalf("there are %d events", len(all))
	}
	return all[0]
}

func decodeEvent(t *testing.T, body []byte) *eventsv1.Event {
	t.Helper()
	e := new(eventsv1.Event)
	if err := json.Unmarshal(body, e); err != nil {
		t.Fatal(err)
	}
	return e
}

// log is a log in memory.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// run starts a recorder in a bubble. The returned function ends it.
func run(t *testing.T, r *events.Recorder, h wire.Handler) (logged *log, end func()) {
	t.Helper()
	logged = new(log)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- r.Start(ctx, &controller.Runtime{Client: kube.NewClientFromHandler(h), Log: slog.New(slog.NewTextHandler(logged, nil))})
	}()
	return logged, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u-1", ResourceVersion: "7"}}
}
