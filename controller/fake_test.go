package controller_test

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// server is a fake API server with what most tests here ask of it.
type server struct {
	*fakeserver.Server
	mu sync.Mutex
	// before is asked about each request first; an error is the answer. It is called without
	// the lock.
	before func(*wire.Request) error
	// unsynced holds the plurals whose lists and watches are not answered.
	unsynced map[string]bool
	synced   chan struct{}
}

type object = map[string]any

func newServer() *server {
	s := &server{Server: fakeserver.New(), unsynced: make(map[string]bool), synced: make(chan struct{})}
	s.Before(func(ctx context.Context, r *wire.Request) error {
		s.mu.Lock()
		before, hold, synced := s.before, s.unsynced[r.Resource.Plural], s.synced
		s.mu.Unlock()
		if before != nil {
			if err := before(r); err != nil {
				return err
			}
		}
		if hold && (r.Verb == wire.VerbWatch || r.Verb == wire.VerbList) {
			select {
			case <-synced:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return s
}

func (s *server) client() *kube.Client { return kube.NewClientFromHandler(s) }

// sync answers the lists and watches of a plural in unsynced.
func (s *server) sync(plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unsynced, plural)
	close(s.synced)
	s.synced = make(chan struct{})
}

// count returns the number of requests that pass, watches apart.
func (s *server) count(pass func(*wire.Request) bool) int {
	n := 0
	for _, e := range s.Requests() {
		if e.Request.Verb != wire.VerbWatch && pass(e.Request) {
			n++
		}
	}
	return n
}

// watches returns the streams that were begun.
func (s *server) watches() (streams []string) {
	for _, e := range s.Requests() {
		if r := e.Request; r.Verb == wire.VerbWatch && r.Query.Get("resourceVersion") == "" {
			streams = append(streams, strings.TrimSpace(r.Resource.Plural+" "+r.Query.Get("labelSelector")))
		}
	}
	slices.Sort(streams)
	return streams
}

// object returns a copy of what is stored, or nil.
func (s *server) object(plural, namespace, name string) object {
	return s.Object(plural, namespace, name)
}

// feeds yields the streams that watches are open for.
func (s *server) feeds(yield func(*feed) bool) {
	for _, stream := range s.Streams() {
		selector, err := labels.Parse(stream.ID.LabelSelector)
		if err != nil {
			panic(err)
		}
		if stream.Watches() > 0 && !yield(&feed{stream, stream.ID.Plural, selector, stream.ID.Representation == wire.MetadataOnly}) {
			return
		}
	}
}

// feed is a stream that watches are open for.
type feed struct {
	stream   *fakeserver.Stream
	plural   string
	selector labels.Selector
	metadata bool
}

// end ends the watches in good order, as a server does that was asked to after some time.
func (f *feed) end() { f.stream.End() }

// refuse returns an answer that is an error, about these fields.
func refuse(r *wire.Request, code int, reason metav1.StatusReason, fields ...string) error {
	return fakeserver.Refusal(r, code, reason, fields...)
}

func meta(o object) object { return o["metadata"].(object) }
