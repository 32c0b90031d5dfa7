package cache

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/kube"
)

// fewUnsure is how many objects of a list are read by themselves. For more of them the
// whole list is read.
const fewUnsure = 8

func (h *handler) list(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	c, in := h.view.cache, scopeOf(r)
	match, ok := matcherOf(r)
	if !ok {
		return h.next.Do(ctx, r)
	}
	store := h.view.coveringStore(r.Cluster, r.Resource, in.namespace, r.Representation, anyStore)
	if store == nil || !h.scopeSure(ctx, r, store) {
		return h.listLive(ctx, r)
	}
	// What was written counts by itself: its labels may not be those that the store shows.
	keys := c.overlay.in(in)
	unsure := 0
	for _, k := range keys {
		if !c.look(store, k, r.Resource, r.Representation).sure {
			unsure++
		}
	}
	if unsure > fewUnsure {
		return h.listLive(ctx, r)
	}
	response := &kube.Response{Code: http.StatusOK, Cached: true}
	written := make(map[kube.Key]bool, len(keys))
	for _, k := range keys {
		written[kube.Key{Namespace: k.namespace, Name: k.name}] = true
		one := *r
		one.Verb, one.Namespace, one.Name, one.Query = kube.VerbGet, k.namespace, k.name, nil
		object, err := h.get(ctx, &one)
		if kube.IsNotFound(err) && !kube.IsNoResource(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		record, err := recordOf(object.Body)
		if err != nil {
			return h.listLive(ctx, r) // whether it matches is for the server to say
		}
		if !match.record(record) {
			continue
		}
		if ok, err := meets(match.matches, record, object.Body); err != nil {
			return nil, fmt.Errorf("list %s: %w", r.Resource, err)
		} else if ok {
			response.Items = append(response.Items, jsontext.Value(object.Body))
		}
	}
	filter, rest := match.filter(store)
	for o := range store.All(filter) {
		if written[o.Key()] || !match.names(o.Record) {
			continue
		}
		body, err := o.Bytes()
		if err != nil {
			return nil, fmt.Errorf("read %s %s from the cache: %w", r.Resource, o.Name, err)
		}
		if ok, err := meets(rest, o.Record, body); err != nil {
			return nil, fmt.Errorf("list %s: %w", r.Resource, err)
		} else if ok {
			response.Items = append(response.Items, jsontext.Value(body))
		}
	}
	return response, nil
}

// meets tells whether an object meets all conditions.
func meets(matches []kube.Match, r Record, object []byte) (bool, error) {
	for _, m := range matches {
		if m.Owner != "" && !slices.ContainsFunc(r.Owners, func(o Owner) bool { return o.UID == m.Owner }) {
			return false, nil
		}
		m.Owner = "" // the record has told
		if ok, err := m.Matches(object); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// listLive reads a list from the server, whose version may settle what is in doubt.
func (h *handler) listLive(ctx context.Context, r *kube.Request) (*kube.Response, error) {
	began := h.view.cache.overlay.begin()
	response, err := h.next.Do(ctx, r)
	if err == nil && h.view.cache.overlay.unsettled() {
		h.view.cache.overlay.bound(scopeOf(r), began, versionOfList(response.Body))
	}
	return response, err
}

// matcher is what a list asks for.
type matcher struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	matches   []kube.Match
}

// matcherOf reads the selectors of a list; not ok are those that only the server can tell.
func matcherOf(r *kube.Request) (matcher, bool) {
	m := matcher{namespace: keyOf(r.Ref()).namespace, labels: labels.Everything(), fields: fields.Everything(), matches: r.Matches}
	for parameter := range r.Query {
		switch parameter {
		case "labelSelector", "fieldSelector":
		case "limit": // all at once is what it comes to
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

// filter is what the store can match by itself, and the conditions that it cannot.
func (m matcher) filter(store *Store) (f Filter, rest []kube.Match) {
	f = Filter{Namespace: m.namespace, Labels: m.labels}
	for _, each := range m.matches {
		if each.Owner != "" && f.Owner == "" {
			f.Owner, each.Owner = each.Owner, ""
		}
		if each.Index != nil && f.Index == nil && store.indexed(each.Index) {
			f.Index, f.Value, each.Index = each.Index, each.Value, nil
		}
		if each.Owner != "" || each.Index != nil {
			rest = append(rest, each)
		}
	}
	return f, rest
}

// record matches what a record shows of an object, the conditions apart.
func (m matcher) record(r Record) bool {
	return (m.namespace == "" || r.Namespace == m.namespace) && m.labels.Matches(r.Labels) && m.names(r)
}

// names matches what the filter leaves out.
func (m matcher) names(r Record) bool {
	return m.fields.Empty() || m.fields.Matches(fields.Set{"metadata.name": r.Name, "metadata.namespace": r.Namespace})
}
