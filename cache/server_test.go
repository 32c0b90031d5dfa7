package cache

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// server is a kube.Handler that serves streaming lists and watches of one kind of objects,
// which the test changes.
type server struct {
	mu      sync.Mutex
	version int
	objects map[kube.Key]string
	history []frame
	// compacted is the version up to which the history is lost.
	compacted int
	feeds     map[*feed]bool
	watches   int
	// seen are the representations that were asked for.
	seen []kube.Representation
}

type frame struct {
	version int
	text    string
}

func newServer() *server {
	return &server{version: 100, objects: make(map[kube.Key]string), feeds: make(map[*feed]bool)}
}

func (s *server) Do(_ context.Context, r *kube.Request) (*kube.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Verb != kube.VerbWatch {
		return nil, fmt.Errorf("unexpected %s", r.Verb)
	}
	s.seen = append(s.seen, r.Representation)
	f := &feed{wake: make(chan struct{}, 1), closed: make(chan struct{}), close: func(f *feed) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.feeds, f)
	}}
	if r.Query.Get("sendInitialEvents") == "true" {
		for _, k := range slices.SortedFunc(maps.Keys(s.objects), func(a, b kube.Key) int { return strings.Compare(a.String(), b.String()) }) {
			f.add(event("ADDED", s.objects[k]))
		}
		f.add(event("BOOKMARK", fmt.Sprintf(
			`{"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, s.version)))
	} else {
		var from int
		fmt.Sscan(r.Query.Get("resourceVersion"), &from)
		if from < s.compacted {
			return nil, &kube.Error{Verb: r.Verb, Ref: r.Ref(), Code: 410,
				Answer: metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}}
		}
		for _, h := range s.history {
			if h.version > from {
				f.add(h.text)
			}
		}
	}
	s.watches++
	s.feeds[f] = true
	return &kube.Response{Code: 200, Stream: f}, nil
}

func event(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

// send shows a frame to all watches.
func (s *server) send(kind, object string) {
	text := event(kind, object)
	if kind != "BOOKMARK" && kind != "ERROR" {
		s.history = append(s.history, frame{s.version, text})
	}
	for f := range s.feeds {
		f.add(text)
	}
}

// put stores an object, which make makes for the version that it gets.
func (s *server) put(k kube.Key, make func(version int) string) (version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	_, there := s.objects[k]
	s.objects[k] = make(s.version)
	if there {
		s.send("MODIFIED", s.objects[k])
	} else {
		s.send("ADDED", s.objects[k])
	}
	return s.version
}

// remove deletes an object, if it is there; make makes its last state.
func (s *server) remove(k kube.Key, make func(version int) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.objects[k]; there {
		s.version++
		delete(s.objects, k)
		s.send("DELETED", make(s.version))
	}
}

func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.send("BOOKMARK", fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"}}`, s.version))
}

// cut ends all watches; with lose, they cannot be resumed either.
func (s *server) cut(lose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lose {
		s.version++
		s.compacted = s.version
		s.history = nil
	}
	for f := range s.feeds {
		delete(s.feeds, f)
		f.end()
	}
}

func (s *server) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds)
}

// feed is the body of a watch.
type feed struct {
	mu     sync.Mutex
	frames []string
	ended  bool
	// wake holds a token when there is something to be looked at.
	wake chan struct{}

	rest   string
	once   sync.Once
	closed chan struct{}
	close  func(*feed)
}

func (f *feed) add(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames = append(f.frames, text)
	f.signal()
}

func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.signal()
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take is the next frame. Empty: there is none yet.
func (f *feed) take() (text string, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.frames) == 0 {
		f.frames = nil
		return "", f.ended
	}
	text, f.frames[0] = f.frames[0], ""
	f.frames = f.frames[1:]
	return text, false
}

func (f *feed) Read(p []byte) (int, error) {
	for f.rest == "" {
		var ended bool
		if f.rest, ended = f.take(); ended {
			return 0, io.EOF
		} else if f.rest != "" {
			break
		}
		select {
		case <-f.wake:
		case <-f.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed); f.close(f) })
	return nil
}

// small is an object with little in it.
func small(k kube.Key, uid string, labels string) func(version int) string {
	return func(version int) string {
		return fmt.Sprintf(`{"metadata":{"labels":{%s},"name":%q,"namespace":%q,"resourceVersion":"%d","uid":%q}}`,
			labels, k.Name, k.Namespace, version, uid)
	}
}

// bytesOf is the content of an object.
func bytesOf(t *testing.T, o Object) string {
	t.Helper()
	b, err := o.Bytes()
	if err != nil {
		t.Fatalf("Bytes of %s: %v", o.Key(), err)
	}
	return string(b)
}
