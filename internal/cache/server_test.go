package cache

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// server is a fake API server with the objects of one kind. The test stores their texts.
type server struct {
	*fakeserver.Server
	resource wire.Resource
	// stream is the stream of all objects of the kind.
	stream *fakeserver.Stream

	mu sync.Mutex
	// texts are the objects as they were stored.
	texts map[kube.Key]string
}

func newServer(r wire.Resource) *server {
	s := &server{Server: fakeserver.New(), resource: r, texts: make(map[kube.Key]string)}
	s.stream = s.Stream(fakeserver.StreamID{Plural: r.Plural})
	return s
}

// put stores the object that makeObject returns for the new version.
func (s *server) put(k kube.Key, makeObject func(version int) string) {
	s.Put(s.resource, k.Namespace, k.Name, func(version int) []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts[k] = makeObject(version)
		return []byte(s.texts[k])
	})
}

// remove deletes an object, if it exists. makeObject returns its last state.
func (s *server) remove(k kube.Key, makeObject func(version int) string) {
	s.Remove(s.resource.Plural, k.Namespace, k.Name, func(version int) []byte {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.texts, k)
		return []byte(makeObject(version))
	})
}

// contents returns the objects as they were stored.
func (s *server) contents() map[kube.Key]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.texts)
}

// bookmark sends a bookmark whose version no object has.
func (s *server) bookmark() {
	s.Advance(1)
	s.stream.Bookmark()
}

// loseHistory makes the server forget what happened so far, so that no watch can be resumed.
func (s *server) loseHistory() {
	s.Advance(1)
	s.Compact()
}

// watchRequests returns the number of watches that were asked for.
func (s *server) watchRequests() (n int) {
	for _, e := range s.Requests() {
		if e.Request.Verb == wire.VerbWatch {
			n++
		}
	}
	return n
}

// small returns a function that returns an object with little in it.
func small(k kube.Key, uid string, labels string) func(version int) string {
	return func(version int) string {
		return fmt.Sprintf(`{"metadata":{"labels":{%s},"name":%q,"namespace":%q,"resourceVersion":"%d","uid":%q}}`,
			labels, k.Name, k.Namespace, version, uid)
	}
}

// bytesOf returns the content of an object.
func bytesOf(t *testing.T, o Object) string {
	t.Helper()
	b, err := o.Bytes()
	if err != nil {
		t.Fatalf("Bytes of %s: %v", o.Key(), err)
	}
	return string(b)
}
