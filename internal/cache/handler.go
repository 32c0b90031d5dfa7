package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// maxUncertain is the number of uncertain objects of a list that are read one by one. If there
// are more, the whole list is read live.
const maxUncertain = 8

// handler is the handler of a View. It answers gets and lists from stores and the overlay. It reads from the server
// what they cannot answer, and records these answers in the overlay.
type handler struct {
	view   *View
	next   wire.Handler
	writer writeHandler
}

// Do serves one request.
func (h *handler) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	switch {
	case r.Verb == wire.VerbGet && r.Subresource == "" && len(r.Query) == 0 && !r.Live:
		return h.get(ctx, r)
	case r.Verb == wire.VerbList && r.Subresource == "" && r.Live:
		return h.listLive(ctx, r)
	case r.Verb == wire.VerbList && r.Subresource == "":
		return h.list(ctx, r)
	case r.Verb.IsWrite():
		return h.writer.write(ctx, r)
	default:
		return h.next.Do(ctx, r)
	}
}

func (h *handler) get(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	k := overlay.KeyOf(r.Ref())
	store, isPartial := h.view.storeFor(k, r.Resource, r.Representation, anyStore)
	if store == nil || !h.resolveCollectionEffects(ctx, r, store) {
		return h.next.Do(ctx, r)
	}
	l := h.view.overlay.lookup(store, k, r.Resource, r.Representation)
	switch {
	case !l.isCertain:
		return h.getLive(ctx, r, k, store)
	case !l.isPresent && isPartial:
		return h.next.Do(ctx, r)
	case !l.isPresent:
		return nil, notFoundError(r)
	}
	body, err := l.bytes()
	if err != nil {
		return nil, fmt.Errorf("read %s from the cache: %w", r.Ref(), err)
	}
	return &wire.Response{Code: http.StatusOK, Body: body, Cached: true}, nil
}

// list answers a list.
func (h *handler) list(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	collection := overlay.KeyOf(r.Ref()).Collection
	match, ok := matcherOf(r)
	if !ok {
		return h.next.Do(ctx, r)
	}
	store := h.view.coveringStore(r.Cluster, r.Resource, collection.Namespace, r.Representation, func(s *Store) bool {
		return SelectsWithin(r, s.stream) && match.canMatch(s.stream)
	})
	if store == nil || !h.resolveCollectionEffects(ctx, r, store) {
		return h.listLive(ctx, r)
	}
	// An object in the overlay counts by itself: its labels may differ from the labels that the store shows.
	inOverlay, uncertain := make(map[kube.Key]lookupResult), []overlay.Key(nil)
	for _, k := range h.view.overlay.Keys(collection) {
		found := h.view.overlay.lookup(store, k, r.Resource, r.Representation)
		if match.serverFields != "" && (!found.isCertain || found.answer != nil) {
			return h.listLive(ctx, r) // the stream has not shown whether the object matches
		}
		if !found.isCertain {
			uncertain = append(uncertain, k)
		}
		inOverlay[k.ObjectKey()] = found
	}
	if len(uncertain) > maxUncertain {
		return h.listLive(ctx, r)
	}
	for _, k := range uncertain {
		get := *r
		get.Verb, get.Namespace, get.Name, get.Query = wire.VerbGet, k.Namespace, k.Name, nil
		response, err := h.getLive(ctx, &get, k, store)
		switch {
		case err == nil:
			inOverlay[k.ObjectKey()] = lookupResult{isCertain: true, isPresent: true, answer: response.Body}
		case kube.IsNotFound(err):
			inOverlay[k.ObjectKey()] = lookupResult{isCertain: true}
		default:
			return nil, err
		}
	}
	// The records decide what is decompressed; the rest is decided when the list comes to it.
	filter, rest := match.filter(store)
	stored := store.All(filter)
	if filter.Index != nil {
		if _, hasPanicked := store.database.HasIndex(filter.Index); hasPanicked {
			rest = append(rest, wire.Match{Index: filter.Index, Value: filter.Value})
		}
	}
	return &wire.Response{Code: http.StatusOK, Cached: true, Items: func(yield func(jsontext.Value, error) bool) {
		for _, found := range inOverlay {
			if !found.isPresent {
				continue
			}
			record, err := found.record()
			if err == nil && !match.matchesRecord(record) {
				continue
			}
			if !yieldMatching(yield, r, record, found, match.matches, err) {
				return
			}
		}
		for o := range stored {
			if _, ok := inOverlay[o.Key()]; ok || !match.matchesFields(o.Record) {
				continue
			}
			if !yieldMatching(yield, r, o.Record, lookupResult{packed: o.packed}, rest, nil) {
				return
			}
		}
	}}, nil
}

// getLive reads an object whose state is uncertain, and records the answer.
func (h *handler) getLive(ctx context.Context, r *wire.Request, k overlay.Key, store *Store) (*wire.Response, error) {
	o := h.view.overlay
	// The object that the store shows before the read is gone if the read does not find it. An
	// object that the store shows afterwards may have been created since.
	var holders []ident.Version
	if object, ok := store.Get(k.ObjectKey()); ok && object.UID != "" {
		holders = []ident.Version{o.shownVersion(k, object.UID)}
	}
	before := o.streams.shownStates(k)
	began := o.Begin()
	response, err := h.next.Do(ctx, r)
	switch {
	case err == nil:
		var answer ident.Answer
		if kube.Unmarshal(response.Body, &answer) != nil || !ident.IsComparable(answer.Metadata.ResourceVersion) {
			break // the next read asks again
		}
		checkAnswer(before, k, answer.Metadata)
		if e := o.valueOf(r, k, answer, response.Body); o.ReplaceWithRead(k, began, e) {
			o.expect(k, e)
		}
	case kube.IsNotFound(err):
		o.ReplaceWithRead(k, began, overlay.Entry{Kind: overlay.Tombstone, Holders: holders})
	case kube.IsNoResource(err) && store.IsUnserved() && !o.isWrittenSinceAbsence(store.stream.Resource, k):
		err = notFoundError(r) // an object of a kind that is not served does not exist
	default:
		return nil, err
	}
	o.dropObserved(k)
	return response, err
}

// listLive reads a list from the server. It records the version of the list in the overlay.
func (h *handler) listLive(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	o := h.view.overlay
	began := o.Begin()
	response, err := h.next.Do(ctx, r)
	// A later page has the version of the first one, and a list at a given version may be older than the request.
	isNewList := !r.Query.Has("continue") && !r.Query.Has("resourceVersion")
	if err == nil && isNewList && o.HasVersionless() {
		o.RecordVersion(overlay.KeyOf(r.Ref()).Collection, began, versionOfList(response.Body))
	}
	return response, err
}

// resolveCollectionEffects returns true if the store has observed all effects on the collection of r, so that an answer
// of the store is certain. If the store has not observed an effect without a version, resolveCollectionEffects first
// reads a version after the effect. It drops the effects that are not needed any more.
func (h *handler) resolveCollectionEffects(ctx context.Context, r *wire.Request, store *Store) (isCertain bool) {
	o, isCertain := h.view.overlay, true
	for collection, effect := range o.CollectionEffects(overlay.KeyOf(r.Ref()).Collection) {
		isObserved := effect.IsObservedBy(store.observeProgress())
		if !isObserved && effect.NeedsVersion() {
			// A list that begins now has a version after the effect.
			if version, err := h.currentVersion(ctx, r, collection.Namespace); err == nil {
				effect = o.SetEffectVersion(collection, effect, version)
				isObserved = effect.IsObservedBy(store.observeProgress())
			}
		}
		switch {
		case !isObserved:
			isCertain = false
		case !o.isEffectNeeded(collection, effect):
			o.DropEffect(collection, effect)
		}
	}
	return isCertain
}

// currentVersion returns the current resource version of a collection. It makes a request.
func (h *handler) currentVersion(ctx context.Context, r *wire.Request, namespace string) (string, error) {
	response, err := h.next.Do(ctx, &wire.Request{
		Cluster: r.Cluster, Verb: wire.VerbList, Resource: r.Resource, Namespace: namespace,
		Query: url.Values{"limit": {"1"}}, Representation: wire.MetadataOnly,
	})
	if err != nil {
		return "", err
	}
	return versionOfList(response.Body), nil
}

// versionOfList returns the resource version of a list, or the empty string if the list cannot be read.
func versionOfList(list []byte) string {
	var answer struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}
	if kube.Unmarshal(list, &answer) != nil {
		return ""
	}
	return answer.Metadata.ResourceVersion
}

// yieldMatching yields an object if it meets all conditions, or the error that prevents the
// check. It reports whether to go on.
func yieldMatching(
	yield func(jsontext.Value, error) bool, r *wire.Request, record Record, l lookupResult, conditions []wire.Match,
	err error,
) bool {
	var body []byte
	if err == nil {
		body, err = l.bytes()
	}
	if err != nil {
		ref := wire.Ref{
			Cluster: r.Cluster, Resource: r.Resource, Namespace: record.Namespace, Name: record.Name, UID: record.UID,
		}
		if _, ok := errors.AsType[*wire.DecodeError](err); !ok {
			err = &wire.DecodeError{Ref: ref, ResourceVersion: record.ResourceVersion, Err: err}
		}
		return yield(nil, err)
	}
	switch ok, err := meetsAll(conditions, record, body); {
	case err != nil:
		yield(nil, fmt.Errorf("list %s: %w", r.Resource, err))
		return false
	case ok:
		return yield(body, nil)
	default:
		return true
	}
}

func notFoundError(r *wire.Request) error {
	return &wire.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: http.StatusNotFound,
		Answer: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("%s %q not found", r.Resource, r.Name),
			Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Plural},
		}}
}
