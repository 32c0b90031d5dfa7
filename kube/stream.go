package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Stream identifies what a list and a watch follow. Two parts of a program with equal Streams
// can share one. It is comparable.
type Stream struct {
	// Cluster is empty for the home cluster.
	Cluster  string
	Resource Resource
	// Namespace is empty for all namespaces, and for resources outside of namespaces.
	Namespace string
	// LabelSelector, FieldSelector and ShardSelector are parameters of lists and watches. An empty
	// selector selects everything.
	LabelSelector  string
	FieldSelector  string
	ShardSelector  string
	Representation Representation
	// IfServed is true for a stream of a resource that the server need not serve. While the server
	// does not serve the resource, the stream is complete and has no objects.
	IfServed bool
}

// String returns the name of the stream in errors and logs.
func (s Stream) String() string {
	text := s.Resource.String()
	if s.Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", s.Namespace)
	}
	for _, selector := range []string{s.LabelSelector, s.FieldSelector, s.ShardSelector} {
		if selector != "" {
			text += fmt.Sprintf(" with %q", selector)
		}
	}
	return text
}

// Streams returns the streams of all objects that match: one for each namespace that the
// client is narrowed to, or one for the namespace of a, or one for all namespaces. One selection
// gives the same Streams however it is written. A selector that servers do not know is an error:
// see [OwnerIs] and [Index.Is].
func (a API[T]) Streams(selectors ...Selector) ([]Stream, error) { return a.streams(selectors) }

func (a resourceView) streams(selectors []Selector) ([]Stream, error) {
	if a.err != nil {
		return nil, a.err
	}
	labelSelector, fieldSelector, err := join(selectors)
	if slices.ContainsFunc(selectors, func(s Selector) bool { return s.match != nil }) {
		err = errors.Join(err, errListsOnly)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.resource, err)
	}
	namespaces := []string{a.namespace}
	if a.namespace == "" && !a.resource.ClusterScoped && len(a.client.namespaces) > 0 {
		namespaces = a.client.namespaces
	}
	streams := make([]Stream, 0, len(namespaces))
	for _, namespace := range namespaces {
		streams = append(streams, Stream{
			Cluster: a.client.cluster, Resource: a.resource, Namespace: namespace,
			LabelSelector: labelSelector, FieldSelector: fieldSelector, Representation: a.representation,
		})
	}
	return streams, nil
}

// Request returns a request of s, such as a list or a watch, with further parameters.
// Parameters are pairs of names and values. A parameter with an empty value is left out.
func (s Stream) Request(verb Verb, parameters ...string) *Request {
	query := selectorQuery(s.LabelSelector, s.FieldSelector)
	if s.ShardSelector != "" {
		query.Set("shardSelector", s.ShardSelector)
	}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			query.Set(parameters[i], parameters[i+1])
		}
	}
	return &Request{
		Cluster: s.Cluster, Verb: verb, Resource: s.Resource, Namespace: s.Namespace,
		Query: query, Representation: s.Representation,
	}
}

// Page is one page of a list, with items that are not decoded.
type Page struct {
	// ResourceVersion is the resource version of the whole list.
	ResourceVersion string
	Items           []jsontext.Value
	// Unreadable holds a [*DecodeError] for each object that could not be read, and so is not
	// among Items.
	Unreadable []error
}

// Pages lists the objects of s as they are now, page by page. A page requests 500 objects, or fewer if
// the objects of the last page were large. An error ends the sequence. If [IsGone] reports the error,
// the list has become too old while it was read, and must be read from its beginning.
func (s Stream) Pages(ctx context.Context, h Handler) iter.Seq2[*Page, error] {
	return s.pages(ctx, h, nil)
}

const (
	// mostItems is how many objects a list asks for at a time, unless they are large.
	mostItems = 500
	// leastItems is how many objects a list asks for at a time however large they are.
	leastItems = 10
	// pageBytes is the size that a page should not exceed.
	pageBytes = 8 << 20
)

// pages lists the objects of s that meet all conditions.
func (s Stream) pages(ctx context.Context, h Handler, matches []Match) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) { s.yieldPages(ctx, h, matches, yield) }
}

// yieldPages does the work of pages.
func (s Stream) yieldPages(ctx context.Context, h Handler, matches []Match, yield func(*Page, error) bool) {
	next, limit := "", mostItems
	for {
		r := s.Request(VerbList, "limit", strconv.Itoa(limit), "continue", next)
		r.Matches = matches
		response, err := h.Do(ctx, r)
		if err != nil {
			yield(nil, err)
			return
		}
		if response.Cached {
			pagesOf(response.Items)(yield)
			return
		}
		var page list
		if err := unmarshalNew(response.Body, &page); err != nil {
			e := newError(s.Request(VerbList))
			e.Err, e.permanent = fmt.Errorf("read the answer: %w", err), true
			yield(nil, e)
			return
		}
		limit = nextLimit(len(page.Items), len(response.Body))
		items, err := meeting(matches, page.Items)
		if err != nil {
			yield(nil, fmt.Errorf("list %s: %w", s, err))
			return
		}
		if !yield(&Page{ResourceVersion: page.Metadata.ResourceVersion, Items: items}, nil) {
			return
		}
		if next = page.Metadata.Continue; next == "" {
			return
		}
	}
}

// cachedPageSize is how many objects of a list that is not read from the server make a page.
const cachedPageSize = 100

// pagesOf returns items in pages.
func pagesOf(items iter.Seq2[jsontext.Value, error]) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		page := new(Page)
		for item, err := range items {
			switch _, unreadable := errors.AsType[*DecodeError](err); {
			case unreadable:
				page.Unreadable = append(page.Unreadable, err)
			case err != nil:
				yield(nil, err)
				return
			default:
				page.Items = append(page.Items, item)
			}
			if len(page.Items)+len(page.Unreadable) < cachedPageSize {
				continue
			}
			if !yield(page, nil) {
				return
			}
			page = new(Page)
		}
		yield(page, nil)
	}
}

// nextLimit returns how many objects the next page should have, if the last page had that many items
// in size bytes.
func nextLimit(items, size int) int {
	if items == 0 || size <= pageBytes*items/mostItems {
		return mostItems
	}
	return max(leastItems, pageBytes*items/size)
}

// StatusError returns the [*Error] that the Status in an ERROR frame stands for.
func (s Stream) StatusError(status jsontext.Value) error {
	e := newError(s.Request(VerbWatch))
	if err := Unmarshal(status, &e.Answer); err != nil {
		e.Err = fmt.Errorf("read the server's error: %w", err)
		return e
	}
	// A Status with a reason alone is still an answer.
	e.Code = cmp.Or(int(e.Answer.Code), http.StatusInternalServerError)
	return e
}

// WatchEvent is one event of a single watch request: ADDED, MODIFIED, DELETED or BOOKMARK. The
// Object of a bookmark has only metadata. The Object of a deletion has only metadata if the server
// sends no more.
type WatchEvent[T any] struct {
	Type   string
	Object *T
}

// Watch sends one watch request from resourceVersion on. The sequence ends with the answer. An
// object that does not fit T comes as a [*DecodeError], and the sequence goes on. Package watch lists
// before it watches, and watches again.
func (a API[T]) Watch(ctx context.Context, resourceVersion string, selectors ...Selector) iter.Seq2[WatchEvent[T], error] {
	return func(yield func(WatchEvent[T], error) bool) {
		streams, err := a.Streams(selectors...)
		if err == nil && len(streams) > 1 {
			err = fmt.Errorf("watch %s: one request cannot watch several namespaces", a.resource)
		}
		if err != nil {
			yield(WatchEvent[T]{}, err)
			return
		}
		s := streams[0]
		response, err := a.client.Do(ctx, s.Request(VerbWatch,
			"resourceVersion", resourceVersion, "allowWatchBookmarks", "true"))
		if err != nil {
			yield(WatchEvent[T]{}, err)
			return
		}
		if response.Stream == nil {
			e := newError(s.Request(VerbWatch))
			e.Err, e.permanent = errors.New("the handler answered a watch without a stream"), true
			yield(WatchEvent[T]{}, e)
			return
		}
		defer response.Stream.Close()
		for frame, err := range Frames(response.Stream) {
			event := WatchEvent[T]{Type: frame.Type}
			switch {
			case err != nil:
				e := newError(s.Request(VerbWatch))
				e.Err = err
				err = e
			case frame.Type == "ERROR":
				err = s.StatusError(frame.Object)
			default:
				event.Object, err = a.decode(frame.Object)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}
