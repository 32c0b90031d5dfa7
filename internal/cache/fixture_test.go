package cache

import (
	"testing"
	"testing/synctest"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// fixture is a client over a cache. Its watches show changes only when the test calls catchUp.
type fixture struct {
	*testing.T
	server *recordingServer
	caches *Cache
	client wire.Handler
}

// withFixture runs a test with a fixture whose streams are synced.
func withFixture(t *testing.T, streams []wire.Stream, test func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &fixture{T: t, server: newRecordingServer(nil)}
		b.caches = New(b.server.streamHandler())
		defer b.caches.Close()
		b.client = b.caches.Handler(b.server)
		for _, s := range streams {
			if _, err := b.caches.Open(t.Context(), s, func(Change) {}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		b.catchUp()
		test(b)
	})
}

var everything = []wire.Stream{webApps}

// overlayKeys returns the keys of all entries about the objects of the tests.
func (c *Cache) overlayKeys() []overlay.Key {
	var keys []overlay.Key
	for _, s := range []wire.Stream{webApps, secrets, pods} {
		keys = append(keys, c.overlay.Keys(overlay.Collection{Group: s.Resource.Group, Plural: s.Resource.Plural})...)
	}
	return keys
}

// catchUp delivers all changes of the server to the streams, and waits until they are published.
func (b *fixture) catchUp() {
	b.server.deliverAll()
	synctest.Wait()
}

func request(verb wire.Verb, name, body string) *wire.Request {
	return &wire.Request{
		Verb: verb, Resource: webApps.Resource, Namespace: "ns", Name: name, Body: []byte(body), ContentType: wire.ContentMergePatch,
	}
}

// changeByOthers makes a change that does not go through the handler.
func (b *fixture) changeByOthers(r *wire.Request) {
	b.Helper()
	if _, _, err := b.server.serve(r); err != nil {
		b.Fatal(err)
	}
}

// do sends a request through the handler.
func (b *fixture) do(r *wire.Request) (*wire.Response, error) {
	b.Helper()
	return b.client.Do(b.Context(), r)
}

// must sends a request that has to succeed.
func (b *fixture) must(r *wire.Request) *wire.Response {
	b.Helper()
	response, err := b.do(r)
	if err != nil {
		b.Fatal(err)
	}
	return response
}

// checkReads compares what reads show, by name and in a list, in full and as metadata, with what
// the server has. The reads may make at most so many requests.
func (b *fixture) checkReads(requests int) {
	b.Helper()
	b.server.mu.Lock()
	before := b.server.requests
	now := b.server.objects[kube.Key{Namespace: "ns", Name: "a"}]
	b.server.mu.Unlock()
	want := ""
	if now != nil {
		want = string(now.Metadata.UID) + "@" + now.Metadata.Version
	}
	for _, representation := range []wire.Representation{wire.Full, wire.MetadataOnly} {
		one := request(wire.VerbGet, "a", "")
		one.Representation = representation
		response, err := b.do(one)
		got := ""
		if err == nil {
			var o state
			if err := kube.Unmarshal(response.Body, &o); err != nil {
				b.Fatal(err)
			}
			got = string(o.Metadata.UID) + "@" + o.Metadata.Version
		} else if !kube.IsNotFound(err) {
			b.Fatal(err)
		}
		if got != want {
			b.Errorf("get (%s) shows %q, the server has %q", representation, got, want)
		}
		all := request(wire.VerbList, "", "")
		all.Representation = representation
		run := &overlayRun{t: b.T}
		if got := run.items(b.must(all))[kube.Key{Namespace: "ns", Name: "a"}]; got != want {
			b.Errorf("a list (%s) shows %q, the server has %q", representation, got, want)
		}
	}
	if made := b.server.requests - before; made > requests {
		b.Errorf("reads made %d requests, want %d", made, requests)
	}
}
