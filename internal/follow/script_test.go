package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/follow"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// thing is the kind that scripted servers serve.
type thingSpec struct {
	Size int `json:"size"`
}

func (thingSpec) Definition() kube.Definition {
	return kube.Definition{Group: "example.com", Version: "v1", Kind: "Thing"}
}

type thing = kube.CustomResource[thingSpec, kube.None]

var things = wire.Stream{Resource: wire.Resource{
	GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
	Plural:           "things",
}}

// answer serves one request of a scripted server.
type answer func(r *wire.Request) (*wire.Response, error)

// script is a Handler that gives one answer after the other, and records the requests. When it
// has none left, a watch hangs and a list is a failure of the test. Probes for a restored server
// are answered by themselves.
type script struct {
	t       *testing.T
	mu      sync.Mutex
	answers []answer
	asked   []string
	times   []time.Time
	// probe answers probes. Without it, probes fail.
	probe  answer
	probes []*wire.Request
}

func (s *script) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	s.mu.Lock()
	if isProbe(r) {
		s.probes = append(s.probes, r)
		s.mu.Unlock()
		if s.probe == nil {
			return nil, statusError(r, 503, "ServiceUnavailable")
		}
		return s.probe(r)
	}
	if r.Verb == wire.VerbWatch && r.Query.Get("allowWatchBookmarks") != "true" {
		s.t.Errorf("%s: a server sends bookmarks only to a watch that asks for them", describe(r))
	}
	s.asked = append(s.asked, describe(r))
	s.times = append(s.times, time.Now())
	var next answer
	if len(s.answers) > 0 {
		next, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	if next == nil && r.Verb == wire.VerbWatch {
		next = stream(hang())
	}
	if next == nil {
		return nil, errors.New("the script is at its end")
	}
	return next(r)
}

// isProbe reports whether r asks whether the server was restored.
func isProbe(r *wire.Request) bool { return r.Verb == wire.VerbList && r.Query.Get("limit") == "1" }

// describe returns a request in the terms of the state machine.
func describe(r *wire.Request) string {
	if r.Verb == wire.VerbList {
		return strings.TrimSpace("list " + r.Query.Get("continue"))
	}
	text := "watch"
	if r.Query.Get("sendInitialEvents") == "true" {
		text += " all"
	}
	if v := r.Query.Get("resourceVersion"); v != "" {
		text += " from " + v
	}
	return text
}

// probeCount returns the number of probes so far.
func (s *script) probeCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.probes)
}

func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// refuse answers with an error of the server's.
func refuse(code int, reason metav1.StatusReason) answer {
	return func(r *wire.Request) (*wire.Response, error) { return nil, statusError(r, code, reason) }
}

func statusError(r *wire.Request, code int, reason metav1.StatusReason) *wire.Error {
	return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: code,
		Answer: metav1.Status{Status: "Failure", Code: int32(code), Reason: reason, Message: string(reason)}}
}

// page answers a list.
func page(version, next string, items ...string) answer {
	return func(r *wire.Request) (*wire.Response, error) {
		if r.Verb != wire.VerbList {
			return nil, fmt.Errorf("a page was scripted, but the request is: %s", describe(r))
		}
		return &wire.Response{Code: 200, Body: fmt.Appendf(nil,
			`{"kind":"ThingList","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`,
			version, next, strings.Join(items, ","))}, nil
	}
}

// stream answers a watch.
func stream(parts ...part) answer {
	return func(r *wire.Request) (*wire.Response, error) {
		if r.Verb != wire.VerbWatch {
			return nil, fmt.Errorf("a stream was scripted, but the request is: %s", describe(r))
		}
		return &wire.Response{Code: 200, Pings: true, BodyReader: &body{parts: parts, closed: make(chan struct{})}}, nil
	}
}

// part is a piece of a stream: bytes, a pause, an error, or silence until it is closed.
type part struct {
	bytes string
	pause time.Duration
	err   error
	hang  bool
}

func frame(kind, object string) part {
	return part{bytes: fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)}
}
func added(object string) part      { return frame("ADDED", object) }
func modified(object string) part   { return frame("MODIFIED", object) }
func deleted(object string) part    { return frame("DELETED", object) }
func pause(d time.Duration) part    { return part{pause: d} }
func broken() part                  { return part{err: errors.New("connection reset by peer")} }
func hang() part                    { return part{hang: true} }
func bookmark(version string) part  { return frame("BOOKMARK", mark(version, "")) }
func endOfList(version string) part { return frame("BOOKMARK", mark(version, "true")) }
func gone() part                    { return frame("ERROR", status(410, "Expired")) }
func status(code int, r string) string {
	return fmt.Sprintf(`{"kind":"Status","code":%d,"reason":%q,"message":%q}`, code, r, r)
}

func mark(version, end string) string {
	annotations := ""
	if end != "" {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Sprintf(`{"kind":"Thing","metadata":{"resourceVersion":%q%s}}`, version, annotations)
}

// object returns a thing. Its uid is its name, unless a uid is given after a slash.
func object(name string, version int) string {
	name, uid, given := strings.Cut(name, "/")
	if !given {
		uid = name
	}
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"default","name":%q,"uid":%q,"resourceVersion":"%d"},"spec":{"size":%d}}`,
		name, uid, version, version)
}

type body struct {
	parts  []part
	rest   string
	once   sync.Once
	closed chan struct{}
}

func (b *body) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	for b.rest == "" {
		if len(b.parts) == 0 {
			return 0, io.EOF
		}
		next := b.parts[0]
		b.parts = b.parts[1:]
		switch {
		case next.err != nil:
			return 0, next.err
		case next.hang:
			<-b.closed
			return 0, io.ErrClosedPipe
		case next.pause > 0:
			select {
			case <-time.After(next.pause):
			case <-b.closed:
				return 0, io.ErrClosedPipe
			}
		default:
			b.rest = next.bytes
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// collect follows a script until enough returns true, and returns what was published, in short:
// "+a1" for a at version 1 added, "~" modified, "-" deleted, "=" a complete list, "!" a report.
// It leaves out the changes that liveness shows.
func collect(ctx context.Context, s *script, enough func(published []string) bool) []string {
	var published []string
	for change, err := range follow.Changes(ctx, s, things) {
		switch change.Type {
		case follow.ChangeBookmark, follow.ChangeListStarted, follow.ChangeWatchOpened, follow.ChangeWatchEnded:
			continue
		}
		published = append(published, changeText(change, err))
		if enough(published) {
			break
		}
	}
	return published
}

// changeText returns a change in short: see collect.
func changeText(c follow.Change, err error) string {
	if err != nil {
		return "!"
	}
	id := c.Key.Name + c.ResourceVersion
	switch c.Type {
	case follow.ChangeAdded:
		return "+" + id
	case follow.ChangeModified:
		return "~" + id
	case follow.ChangeDeleted:
		if c.Object == nil {
			return "-" + id + "?" // seen to be missing only
		}
		return "-" + id
	default:
		return "="
	}
}

// enough ends a sequence after n entries.
func enough(n int) func([]string) bool {
	return func(published []string) bool { return len(published) >= n }
}
