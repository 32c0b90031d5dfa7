package cache

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
)

// handler is the handler of a View. It answers gets from stores, and passes all other requests to its parts.
type handler struct {
	view   *View
	next   kube.Handler
	live   liveHandler
	lister listHandler
	writer writeHandler
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	switch {
	case r.Verb == kube.VerbGet && r.Subresource == "" && len(r.Query) == 0 && !r.Live:
		return h.get(ctx, r)
	case r.Verb == kube.VerbList && r.Subresource == "" && r.Live:
		return h.live.list(ctx, r)
	case r.Verb == kube.VerbList && r.Subresource == "":
		return h.lister.list(ctx, r)
	case r.Verb.IsWrite():
		return h.writer.write(ctx, r)
	default:
		return h.next.Do(ctx, r)
	}
}

func (h *handler) get(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	k := overlay.KeyOf(r.Ref())
	store, isPartial := h.view.storeFor(k, r.Resource, r.Representation, anyStore)
	if store == nil || !h.live.resolveCollectionDoubts(ctx, r, store) {
		return h.next.Do(ctx, r)
	}
	l := h.view.overlay.lookup(store, k, r.Resource, r.Representation)
	switch {
	case !l.isCertain:
		return h.live.get(ctx, r, k, store)
	case !l.isPresent && isPartial:
		return h.next.Do(ctx, r)
	case !l.isPresent:
		return nil, notFoundError(r)
	}
	body, err := l.bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s from the cache: %w", r.Ref(), err)
	}
	return &kube.Response{Code: http.StatusOK, Body: body, Cached: true}, nil
}

func notFoundError(r *kube.Request) error {
	return &kube.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: http.StatusNotFound,
		Answer: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("%s %q not found", r.Resource, r.Name),
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Plural},
		}}
}
