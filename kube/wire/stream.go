package wire

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Stream identifies what a list and a watch follow. Two parts of a program with equal Streams
// can share one. It is comparable.
type Stream struct {
	// Cluster is the name of another cluster. It is always empty today: a client of kube.NewClient has one server, the
	// home cluster.
	Cluster  string
	Resource Resource
	// Namespace is empty for all namespaces, and for resources outside of namespaces.
	Namespace string
	// LabelSelector, FieldSelector and ShardSelector are parameters of lists and watches. An empty selector selects
	// everything. ShardSelector is always empty today: Kubernetes has no stable parameter of that kind yet.
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

// Request returns a request of s, such as a list or a watch, with further parameters.
// Parameters are pairs of names and values. A parameter with an empty value is left out.
func (s Stream) Request(verb Verb, parameters ...string) *Request {
	query := url.Values{}
	for name, selector := range map[string]string{
		"labelSelector": s.LabelSelector, "fieldSelector": s.FieldSelector, "shardSelector": s.ShardSelector,
	} {
		if selector != "" {
			query.Set(name, selector)
		}
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

// Pages lists the objects of s as they are now that meet all conditions, page by page. A page requests 500 objects, or
// fewer if the objects of the last page were large: when 500 objects of the first page have 80 MiB, the second page
// requests 50 objects. An error ends the sequence. If the error has the reason Gone, the list has become too old
// meanwhile, and must be read from its beginning.
func (s Stream) Pages(ctx context.Context, h Handler, matches ...Match) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) { s.yieldPages(ctx, h, matches, yield) }
}

// yieldPages calls yield with each page of [Stream.Pages]. It is a function by itself because the compiler copies the
// body of Pages into each caller.
func (s Stream) yieldPages(ctx context.Context, h Handler, matches []Match, yield func(*Page, error) bool) {
	next, limit := "", maxPageItems
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
		var page listPage
		if err := kubejson.Decode(response.Body, &page); err != nil {
			e := NewError(s.Request(VerbList))
			e.Err, e.Permanent = fmt.Errorf("read the answer: %w", err), true
			yield(nil, e)
			return
		}
		limit = nextLimit(len(page.Items), len(response.Body))
		items, err := matching(matches, page.Items)
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

// StatusError returns the [*Error] that the Status in an ERROR frame stands for.
func (s Stream) StatusError(status jsontext.Value) error {
	e := NewError(s.Request(VerbWatch))
	if err := kubejson.Unmarshal(status, &e.Answer); err != nil {
		e.Err = fmt.Errorf("read the server's error: %w", err)
		return e
	}
	// A Status with a reason alone is still an answer.
	e.Code = cmp.Or(int(e.Answer.Code), http.StatusInternalServerError)
	return e
}
