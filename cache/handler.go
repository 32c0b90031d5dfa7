package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// Handler answers reads from the stores where one holds every object that is asked for,
// and passes on everything else. It sees the writes, so that a read through it is at least
// as new as every write through it, whatever the verb, the namespace and the
// representation; see the package comment. All handlers of one Cache share what they
// know.
func (c *Cache) Handler(next kube.Handler) kube.Handler { return c.View().Handler(next) }

type handler struct {
	view *View
	next kube.Handler
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	switch {
	case r.Verb == kube.VerbGet && r.Subresource == "" && len(r.Query) == 0:
		return h.get(ctx, r)
	case r.Verb == kube.VerbList && r.Subresource == "":
		return h.list(ctx, r)
	case !r.Verb.IsWrite():
		return h.next.Do(ctx, r)
	}
	c := h.view.cache
	began := c.overlay.begin()
	response, err := h.next.Do(ctx, r)
	h.view.note(r, began, response, err)
	c.sweep()
	return response, err
}

func (h *handler) get(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	k := keyOf(r.Ref())
	store, partial := h.view.storeFor(k, r.Resource, r.Representation, anyStore)
	if store == nil || !h.scopeSure(ctx, r, store) {
		return h.next.Do(ctx, r)
	}
	f := h.view.cache.look(store, k, r.Resource, r.Representation)
	switch {
	case !f.sure:
		return h.settle(ctx, r, k, store)
	case !f.present && partial:
		return h.next.Do(ctx, r)
	case !f.present:
		return nil, notFound(r)
	}
	body, err := f.bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s from the cache: %w", r.Ref(), err)
	}
	return &kube.Response{Code: http.StatusOK, Body: body, Cached: true}, nil
}

// settle reads an object live that is in doubt, and keeps what comes.
func (h *handler) settle(ctx context.Context, r *kube.Request, k overlayKey, store *Store) (*kube.Response, error) {
	// What the store shows before the read is gone if the read does not find it; what it
	// shows afterwards may have come since.
	var shown []sighting
	if o, ok := store.Get(kube.Key{Namespace: k.namespace, Name: k.name}); ok {
		shown = addSighting(nil, sighting{uid: o.UID, version: h.view.cache.versionOf(k, o.UID)})
	}
	began := h.view.cache.overlay.begin()
	response, err := h.next.Do(ctx, r)
	switch {
	case err == nil:
		var answer outcome
		if kube.Unmarshal(response.Body, &answer) != nil || !comparableVersion(answer.Metadata.ResourceVersion) {
			break // the next read asks again
		}
		m := answer.Metadata
		h.view.cache.overlay.settle(k, began, overlayEntry{
			kind: value, uid: m.UID, version: m.ResourceVersion,
			seen:   addSighting(nil, sighting{uid: m.UID, version: m.ResourceVersion}),
			object: bytes.Clone(response.Body), resource: r.Resource, form: r.Representation,
		})
	case kube.IsNotFound(err) && !kube.IsNoResource(err):
		h.view.cache.overlay.settle(k, began, overlayEntry{kind: tombstone, seen: shown})
	default:
		return nil, err
	}
	h.view.cache.tidyKey(k)
	return response, err
}

// scopeSure tells whether the store shows all that happened in collections that the
// request is about, and finds out from which version on it does.
func (h *handler) scopeSure(ctx context.Context, r *kube.Request, store *Store) bool {
	sure := true
	for s, d := range h.view.cache.overlay.doubted(scopeOf(r)) {
		lost := d.version != "" && time.Since(d.at) > settleAfter && !reached(store.Version(), d.version)
		if d.version == "" || lost {
			// A list made now has a version after all effects.
			version, err := h.versionNow(ctx, r, s.namespace)
			if err != nil {
				sure = false
				continue
			}
			d.version = version
			h.view.cache.overlay.boundScope(s, d, version)
		}
		switch {
		case !reached(store.Version(), d.version):
			sure = false
		case h.view.cache.settled(s, d):
			h.view.cache.overlay.dropScope(s, d)
		}
	}
	return sure
}

// versionNow is the version of a resource as it is now.
func (h *handler) versionNow(ctx context.Context, r *kube.Request, namespace string) (string, error) {
	response, err := h.next.Do(ctx, &kube.Request{
		Cluster: r.Cluster, Verb: kube.VerbList, Resource: r.Resource, Namespace: namespace,
		Query: url.Values{"limit": {"1"}}, Representation: kube.MetadataOnly,
	})
	if err != nil {
		return "", err
	}
	version := versionOfList(response.Body)
	if !comparableVersion(version) {
		return "", errNoVersion
	}
	return version, nil
}

var errNoVersion = errors.New("the list has no version that can be compared")

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
