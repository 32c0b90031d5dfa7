package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/events"
	"github.com/yare-go/yare/kube"
)

// script is a scripted server that keeps events. If fail is set, its error is the answer.
type script struct {
	mu     sync.Mutex
	fail   func(n int, r *kube.Request) error
	asked  []string // the requests, with their time since the start
	since  time.Time
	events map[string]*eventsv1.Event
	n      int
}

func newScript() *script { return &script{since: time.Now(), events: make(map[string]*eventsv1.Event)} }
func (s *script) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	line := fmt.Sprintf("%s %s", time.Since(s.since), r.Verb)
	if s.fail != nil {
		if err := s.fail(s.n, r); err != nil {
			s.asked = append(s.asked, line+" failed")
			return nil, err
		}
	}
	e := new(eventsv1.Event)
	if r.Verb == kube.VerbPatch {
		old, ok := s.events[r.Namespace+"/"+r.Name]
		if !ok {
			s.asked = append(s.asked, line+" not found")
			return nil, statusError(r, http.StatusNotFound, metav1.StatusReasonNotFound)
		}
		*e = *old
	}
	if err := json.Unmarshal(r.Body, e); err != nil {
		return nil, err
	}
	name := r.Namespace + "/" + e.Name
	if _, ok := s.events[name]; ok && r.Verb == kube.VerbCreate {
		s.asked = append(s.asked, line+" exists")
		return nil, statusError(r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
	}
	if e.Series != nil {
		line += fmt.Sprint(" x", e.Series.Count)
	}
	s.asked = append(s.asked, line)
	s.events[name] = e
	body, err := json.Marshal(e)
	return &kube.Response{Code: 200, Body: body}, err
}

func (s *script) check(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := strings.Join(s.asked, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the requests:\n%s\nnot:\n%s", got, strings.Join(want, "\n"))
	}
}

// onlyEvent returns the event of the server, which must have exactly one.
func (s *script) onlyEvent(t *testing.T) *eventsv1.Event {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) != 1 {
		t.Fatalf("there are %d events", len(s.events))
	}
	for _, e := range s.events {
		return e
	}
	return nil
}

func statusError(r *kube.Request, code int, reason metav1.StatusReason) error {
	return &kube.Error{Verb: r.Verb, Ref: r.Ref(), Code: code,
		Answer: metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Details: &metav1.StatusDetails{Name: r.Name}}}
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
func run(t *testing.T, r *events.Recorder, h kube.Handler) (logged *log, end func()) {
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
