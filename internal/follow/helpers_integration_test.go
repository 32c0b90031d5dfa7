package follow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/watch"
	"github.com/yare-go/yare/yaretest"
)

// link stands in the pipeline between a watch and a real server. It records the requests. While
// it is cut, requests get no answer.
type link struct {
	mu      sync.Mutex
	asked   []string
	mended  chan struct{} // nil: it is not cut
	streams []io.Closer
}

func (l *link) through(next wire.Handler) wire.Handler {
	return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
		l.mu.Lock()
		l.asked = append(l.asked, describe(r))
		mended := l.mended
		l.mu.Unlock()
		if mended != nil {
			select {
			case <-mended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		response, err := next.Do(ctx, r)
		if err == nil && response.BodyReader != nil {
			l.mu.Lock()
			if l.mended != nil { // it was cut while this was under way
				response.BodyReader.Close()
			} else {
				l.streams = append(l.streams, response.BodyReader)
			}
			l.mu.Unlock()
		}
		return response, err
	})
}

// sever ends all watches, and lets no request through before mend.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mended = make(chan struct{})
	for _, s := range l.streams {
		s.Close()
	}
	l.streams = nil
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.mended)
	l.mended = nil
}

// count counts the requests that begin so.
func (l *link) count(prefix string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.asked {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// following is a running watch and what it has published.
type following struct {
	link
	mu        sync.Mutex
	published []string // signs, names and sizes
	errors    []error
}

// followThings watches things until the end of t.
func followThings(t *testing.T, client *kube.Client, selectors ...kube.Selector) *following {
	t.Helper()
	f := new(following)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for e, err := range watch.Events(ctx, kube.Everywhere[thing](client.With(f.through)), selectors...) {
			f.record(e, err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

func (f *following) record(e watch.Event[thing], err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.errors = append(f.errors, err)
		return
	}
	id := func(t *thing) string { return fmt.Sprintf("%s%d", t.Name, t.Spec.Size) }
	switch e := e.(type) {
	case watch.Added[thing]:
		f.published = append(f.published, "+"+id(e.Object))
	case watch.Modified[thing]:
		f.published = append(f.published, "~"+id(e.Object))
	case watch.Deleted[thing]:
		if e.Stale {
			f.published = append(f.published, "-"+e.Object.Name+"?")
		} else {
			f.published = append(f.published, "-"+id(e.Object))
		}
	case watch.Synced[thing]:
		f.published = append(f.published, "=")
	}
}

// reports returns the errors so far, one a line.
func (f *following) reports() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(errors.Join(f.errors...))
}

func (f *following) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.published)
}

// expect waits until exactly this was published, in this order. The changes in brackets may come
// in any order.
func (f *following) expect(t *testing.T, published string) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		if diff := cmp.Diff(ordered(strings.Fields(published)), ordered(groupLike(strings.Fields(published), f.all()))); diff != "" {
			return fmt.Errorf("published (-want +got):\n%s", diff)
		}
		return nil
	})
}

// ordered sorts what is between brackets.
func ordered(words []string) []string {
	var out []string
	start := -1
	for _, w := range words {
		switch w {
		case "[":
			start = len(out)
		case "]":
			slices.Sort(out[start:])
		default:
			out = append(out, w)
		}
	}
	return out
}

// groupLike puts the brackets of pattern into words.
func groupLike(pattern, words []string) []string {
	var out []string
	for _, p := range pattern {
		if p == "[" || p == "]" {
			out = append(out, p)
		} else if len(words) > 0 {
			out, words = append(out, words[0]), words[1:]
		} else if p != "]" {
			continue
		}
	}
	return append(out, words...)
}

// newThing returns a thing. Labels have the form "name=value".
func newThing(namespace, name string, size int, labels ...string) *thing {
	o := &thing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: thingSpec{Size: size}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		metav1.SetMetaDataLabel(&o.ObjectMeta, k, v)
	}
	return o
}

func apply(t *testing.T, client *kube.Client, things ...*thing) {
	t.Helper()
	for _, o := range things {
		if _, err := kube.Apply(t.Context(), client, o); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, client *kube.Client, namespace, name string) {
	t.Helper()
	if err := kube.Namespaced[thing](client, namespace).Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// withThings makes a cluster serve things.
func withThings(t *testing.T, cluster *yaretest.Cluster) *kube.Client {
	t.Helper()
	defined, err := kube.TypeOf[thing]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, defined)
	return cluster.Client(t)
}

func tick() <-chan time.Time { return time.After(40 * time.Millisecond) }
