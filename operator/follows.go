package operator

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// follows knows the streams that the author's own functions follow, by package watch, and
// not by the caches: which of them have been listed. It learns so from their requests.
type follows struct {
	mu     sync.Mutex
	synced map[kube.Stream]bool
}

func newFollows() *follows { return &follows{synced: make(map[kube.Stream]bool)} }

// missing are the streams that have not been listed.
func (f *follows) missing() []kube.Stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	var missing []kube.Stream
	for s, synced := range f.synced {
		if !synced {
			missing = append(missing, s)
		}
	}
	return missing
}

// begin notes that a stream is being listed, unless it has been before.
func (f *follows) begin(s kube.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.synced[s] {
		f.synced[s] = false
	}
}

// end notes that a stream has been listed, if it was known at all.
func (f *follows) end(s kube.Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.synced[s]; known {
		f.synced[s] = true
	}
}

// watchOver is the handler that sees the requests.
func (f *follows) watchOver(next kube.Handler) kube.Handler {
	return kube.HandlerFunc(func(ctx context.Context, r *kube.Request) (*kube.Response, error) {
		if r.Verb != kube.VerbWatch {
			return next.Do(ctx, r)
		}
		s := kube.Stream{
			Cluster: r.Cluster, Resource: r.Resource, Namespace: r.Namespace, Representation: r.Representation,
			LabelSelector: r.Query.Get("labelSelector"), FieldSelector: r.Query.Get("fieldSelector"), ShardSelector: r.Query.Get("shardSelector"),
		}
		streaming := r.Query.Get("sendInitialEvents") == "true"
		if streaming {
			f.begin(s)
		}
		response, err := next.Do(ctx, r)
		switch {
		case err != nil || response.Stream == nil:
		case streaming:
			seen := *response
			seen.Stream = &untilListed{ReadCloser: response.Stream, end: func() { f.end(s) }}
			response = &seen
		default:
			f.end(s) // it was listed in pages
		}
		return response, err
	})
}

// untilListed looks for the end of the list in a stream that begins with one.
type untilListed struct {
	io.ReadCloser
	// tail is the end of what was read, which may be the beginning of the mark.
	tail []byte
	// end is nil once it has been called.
	end func()
}

func (u *untilListed) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if u.end == nil {
		return n, err
	}
	const endOfList = metav1.InitialEventsAnnotationKey
	u.tail = append(u.tail, p[:n]...)
	if bytes.Contains(u.tail, []byte(endOfList)) {
		u.end()
		u.end, u.tail = nil, nil
	} else if more := len(u.tail) - len(endOfList); more > 0 {
		u.tail = slices.Delete(u.tail, 0, more)
	}
	return n, err
}
