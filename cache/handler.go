package cache

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// Handler returns a handler that answers a read from a store that holds every object that the
// read asks for, and passes everything else to next, including the reads of [kube.Client.Live]. It
// records the writes, so that a read through it is at least as new as every write through it,
// whatever the verb, the namespace and the representation. All handlers of one Cache share one
// overlay.
func (c *Cache) Handler(next kube.Handler) kube.Handler { return c.View().Handler(next) }

// Doubt records that the object that ref names may be gone, although the streams still show it. So
// the next read of the object asks the server, unless it is already known that the object of that UID
// is gone. Doubt makes no request.
func (c *Cache) Doubt(ref kube.Ref) { c.overlay.DoubtObject(overlay.KeyOf(ref), ref.UID) }

type handler struct {
	view *View
	next kube.Handler
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	switch {
	case r.Verb == kube.VerbGet && r.Subresource == "" && len(r.Query) == 0 && !r.Live:
		return h.get(ctx, r)
	case r.Verb == kube.VerbList && r.Subresource == "" && r.Live:
		return h.listLive(ctx, r)
	case r.Verb == kube.VerbList && r.Subresource == "":
		return h.list(ctx, r)
	case !r.Verb.IsWrite():
		return h.next.Do(ctx, r)
	}
	shown := h.view.cache.shownVersions(overlay.KeyOf(r.Ref()))
	began := h.view.cache.overlay.Begin()
	response, err := h.next.Do(ctx, r)
	h.view.recordWrite(r, began, shown, response, err)
	h.view.cache.overlay.Sweep(h.view.cache.isNeeded, h.view.cache.isDoubted)
	return response, err
}

func (h *handler) get(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	k := overlay.KeyOf(r.Ref())
	store, partial := h.view.storeFor(k, r.Resource, r.Representation, anyStore)
	if store == nil || !h.resolveCollectionDoubts(ctx, r, store) {
		return h.next.Do(ctx, r)
	}
	l := h.view.cache.lookup(store, k, r.Resource, r.Representation)
	switch {
	case !l.certain:
		return h.readLive(ctx, r, k, store)
	case !l.present && partial:
		return h.next.Do(ctx, r)
	case !l.present:
		return nil, notFound(r)
	}
	body, err := l.bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s from the cache: %w", r.Ref(), err)
	}
	return &kube.Response{Code: http.StatusOK, Body: body, Cached: true}, nil
}

// readLive reads an object whose state is uncertain from the server, and records the answer.
func (h *handler) readLive(ctx context.Context, r *kube.Request, k overlay.Key, store *Store) (*kube.Response, error) {
	c := h.view.cache
	// The object that the store shows before the read is gone if the read does not find it. An
	// object that the store shows afterwards may have been created since.
	var shown []overlay.ObservedVersion
	if o, ok := store.Get(k.In()); ok {
		shown = overlay.AddObserved(nil, overlay.ObservedVersion{UID: o.UID, Version: c.observedVersion(k, o.UID)})
	}
	before := c.shownVersions(k)
	began := c.overlay.Begin()
	response, err := h.next.Do(ctx, r)
	switch {
	case err == nil:
		var answer writeAnswer
		if kube.Unmarshal(response.Body, &answer) != nil || !ident.IsComparable(answer.Metadata.ResourceVersion) {
			break // the next read asks again
		}
		checkAnswer(before, answer.Metadata)
		if e := c.valueOf(r, k, answer, response.Body); c.overlay.Settle(k, began, e) {
			c.expect(k, e)
		}
	case kube.IsNotFound(err):
		c.overlay.Settle(k, began, overlay.Entry{Kind: overlay.Tombstone, Observed: shown})
	default:
		return nil, err
	}
	c.dropObserved(k)
	return response, err
}

// resolveCollectionDoubts gives each doubt about the request's collections a version after all
// of its effects, if it has none. It reports whether the store has reached all of these versions.
func (h *handler) resolveCollectionDoubts(ctx context.Context, r *kube.Request, store *Store) bool {
	c, certain := h.view.cache, true
	for in, d := range c.overlay.Doubts(overlay.KeyOf(r.Ref()).Collection) {
		observed := d.IsObservedBy(store.reached())
		if !observed && d.NeedsVersion() {
			// A list that begins now has a version after all effects.
			if version, err := h.currentVersion(ctx, r, in.Namespace); err == nil {
				d = c.overlay.BoundDoubt(in, d, version)
				observed = d.IsObservedBy(store.reached())
			}
		}
		switch {
		case !observed:
			certain = false
		case !c.isDoubted(in, d):
			c.overlay.DropDoubt(in, d)
		}
	}
	return certain
}

// currentVersion returns the current resource version of a collection. It makes a request.
func (h *handler) currentVersion(ctx context.Context, r *kube.Request, namespace string) (string, error) {
	response, err := h.next.Do(ctx, &kube.Request{
		Cluster: r.Cluster, Verb: kube.VerbList, Resource: r.Resource, Namespace: namespace,
		Query: url.Values{"limit": {"1"}}, Representation: kube.MetadataOnly,
	})
	if err != nil {
		return "", err
	}
	return versionOfList(response.Body), nil
}

func versionOfList(list []byte) string {
	var answer struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}
	if kube.Unmarshal(list, &answer) != nil {
		return ""
	}
	return answer.Metadata.ResourceVersion
}

func notFound(r *kube.Request) error {
	return &kube.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: http.StatusNotFound,
		Answer: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("%s %q not found", r.Resource, r.Name),
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Plural},
		}}
}
