package controller

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/kube"
)

// recorder notes what one call of a reconcile function reads and writes.
type recorder struct {
	next kube.Handler
	// begins is told of each write before it is sent, and ends of what it made.
	begins func(place)
	ends   func(place, echo)
	// over is why no more may be done, once the program has ended: a call that ignores its
	// context must not write when another instance may have taken over.
	over func() error

	mu     sync.Mutex
	reads  int
	writes []Write
}

func (r *recorder) Do(ctx context.Context, request *kube.Request) (*kube.Response, error) {
	if err := r.over(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", request.Verb, request.Ref(), err)
	}
	if !request.Verb.IsWrite() {
		response, err := r.next.Do(ctx, request)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reads++
		return response, err
	}
	w := Write{Verb: request.Verb, Object: request.Ref(), Subresource: request.Subresource}
	w.Object.Name = request.ObjectName()
	at := placeOf(request.Resource, request.Namespace, w.Object.Name)
	r.begins(at)
	var made echo
	defer func() { r.ends(at, made) }()
	response, err := r.next.Do(ctx, request)
	w.Skipped, w.Failed = err == nil && response.Cached, err != nil
	if err == nil && !response.Cached {
		made = r.made(request, response, &w)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, w)
	return response, err
}

// made is the change that the stream will show of a write. The name may be one that the
// server gave.
func (r *recorder) made(request *kube.Request, response *kube.Response, w *Write) echo {
	var answer struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name              string    `json:"name"`
			UID               types.UID `json:"uid"`
			ResourceVersion   string    `json:"resourceVersion"`
			DeletionTimestamp *string   `json:"deletionTimestamp"`
		} `json:"metadata"`
		Details struct {
			UID types.UID `json:"uid"`
		} `json:"details"`
	}
	if request.Verb == kube.VerbDeleteCollection || kube.Unmarshal(response.Body, &answer) != nil {
		return echo{}
	}
	if w.Object.Name == "" {
		w.Object.Name = answer.Metadata.Name
	}
	switch {
	case answer.Kind == "Status":
		return echo{uid: answer.Details.UID}
	case request.Verb == kube.VerbDelete && answer.Metadata.DeletionTimestamp == nil:
		return echo{uid: answer.Metadata.UID}
	case answer.Metadata.ResourceVersion == "":
		return echo{}
	default:
		return echo{answer.Metadata.UID, answer.Metadata.ResourceVersion}
	}
}

// seen is what was noted so far.
func (r *recorder) seen() (reads int, writes []Write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads, r.writes
}
