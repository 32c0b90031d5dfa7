package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/kube"
)

// maxUncertain is the number of uncertain objects of a list that are read one by one. If there
// are more, the whole list is read live.
const maxUncertain = 8

// listHandler answers lists from stores and the overlay.
type listHandler struct {
	view *View
	live liveHandler
}

// list answers a list.
func (l *listHandler) list(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	in := overlay.KeyOf(r.Ref()).Collection
	match, ok := matcherOf(r)
	if !ok {
		return l.live.next.Do(ctx, r)
	}
	store := l.view.coveringStore(r.Cluster, r.Resource, in.Namespace, r.Representation, anyStore)
	if store == nil || !l.live.resolveCollectionDoubts(ctx, r, store) {
		return l.live.list(ctx, r)
	}
	// A written object counts by itself: its labels may differ from the labels that the store shows.
	written, uncertain := make(map[kube.Key]lookupResult), []overlay.Key(nil)
	for _, k := range l.view.overlay.Keys(in) {
		found := l.view.overlay.lookup(store, k, r.Resource, r.Representation)
		if !found.isCertain {
			uncertain = append(uncertain, k)
		}
		written[k.In()] = found
	}
	if len(uncertain) > maxUncertain {
		return l.live.list(ctx, r)
	}
	for _, k := range uncertain {
		get := *r
		get.Verb, get.Namespace, get.Name, get.Query = kube.VerbGet, k.Namespace, k.Name, nil
		response, err := l.live.get(ctx, &get, k, store)
		switch {
		case err == nil:
			written[k.In()] = lookupResult{isCertain: true, isPresent: true, written: response.Body}
		case kube.IsNotFound(err):
			written[k.In()] = lookupResult{isCertain: true}
		default:
			return nil, err
		}
	}
	// The records decide what is decompressed; the rest is decided when the list comes to it.
	filter, rest := match.filter(store)
	stored := store.All(filter)
	if filter.Index != nil {
		if _, panicked := store.objects.HasIndex(filter.Index); panicked {
			rest = append(rest, kube.Match{Index: filter.Index, Value: filter.Value})
		}
	}
	return &kube.Response{Code: http.StatusOK, Cached: true, Items: func(yield func(jsontext.Value, error) bool) {
		for _, found := range written {
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
			if _, ok := written[o.Key()]; ok || !match.matchesFields(o.Record) {
				continue
			}
			if !yieldMatching(yield, r, o.Record, lookupResult{object: o}, rest, nil) {
				return
			}
		}
	}}, nil
}

// yieldMatching yields an object if it meets all conditions, or the error that prevents the
// check. It reports whether to go on.
func yieldMatching(yield func(jsontext.Value, error) bool, r *kube.Request, record Record, l lookupResult, conditions []kube.Match, err error) bool {
	var body []byte
	if err == nil {
		body, err = l.bytes()
	}
	if err != nil {
		ref := kube.Ref{Cluster: r.Cluster, Resource: r.Resource, Namespace: record.Namespace, Name: record.Name, UID: record.UID}
		if _, ok := errors.AsType[*kube.DecodeError](err); !ok {
			err = &kube.DecodeError{Ref: ref, ResourceVersion: record.ResourceVersion, Err: err}
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

// meetsAll reports whether an object meets all conditions.
func meetsAll(matches []kube.Match, r Record, object []byte) (bool, error) {
	for _, m := range matches {
		if m.Owner != "" && !slices.ContainsFunc(r.Owners, func(o Owner) bool { return o.UID == m.Owner }) {
			return false, nil
		}
		m.Owner = "" // the record has answered that
		if ok, err := m.Matches(object); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// matcher selects the objects that a list asks for.
type matcher struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	matches   []kube.Match
}

// matcherOf returns the matcher of a list. It returns false if only the server can decide which
// objects match.
func matcherOf(r *kube.Request) (matcher, bool) {
	m := matcher{namespace: overlay.KeyOf(r.Ref()).Namespace, labels: labels.Everything(), fields: fields.Everything(), matches: r.Matches}
	for parameter := range r.Query {
		switch parameter {
		case "labelSelector", "fieldSelector":
		case "limit": // a list from a store has one page
		default:
			// A version, a shard, or the next page of a list that was begun at the server.
			if r.Query.Get(parameter) != "" {
				return m, false
			}
		}
	}
	var err error
	if expression := r.Query.Get("labelSelector"); expression != "" {
		if m.labels, err = labels.Parse(expression); err != nil {
			return m, false
		}
	}
	if expression := r.Query.Get("fieldSelector"); expression != "" {
		if m.fields, err = fields.ParseSelector(expression); err != nil {
			return m, false
		}
		for _, requirement := range m.fields.Requirements() {
			if requirement.Field != "metadata.name" && requirement.Field != "metadata.namespace" {
				return m, false
			}
		}
	}
	return m, true
}

// filter returns what the store can match by itself, and the conditions that it cannot match.
func (m matcher) filter(store *Store) (f Filter, rest []kube.Match) {
	f = Filter{Namespace: m.namespace, Labels: m.labels}
	for _, each := range m.matches {
		if each.Owner != "" && f.Owner == "" {
			f.Owner, each.Owner = each.Owner, ""
		}
		if each.Index != nil && f.Index == nil {
			if kept, _ := store.objects.HasIndex(each.Index); kept {
				f.Index, f.Value, each.Index = each.Index, each.Value, nil
			}
		}
		if each.Owner != "" || each.Index != nil {
			rest = append(rest, each)
		}
	}
	return f, rest
}

// matchesRecord reports whether an object matches, apart from the conditions in matches.
func (m matcher) matchesRecord(r Record) bool {
	return (m.namespace == "" || r.Namespace == m.namespace) && m.labels.Matches(r.Labels) && m.matchesFields(r)
}

// matchesFields reports whether an object matches the field selector, which the filter leaves
// out.
func (m matcher) matchesFields(r Record) bool {
	return m.fields.Empty() || m.fields.Matches(fields.Set{"metadata.name": r.Name, "metadata.namespace": r.Namespace})
}
