package kube

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/kube/internal/kubejson"
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

// Request returns a request of s, such as a list or a watch, with further parameters.
// Parameters are pairs of names and values. A parameter with an empty value is left out.
func (s Stream) Request(verb Verb, parameters ...string) *Request {
	query := url.Values{}
	for name, selector := range map[string]string{"labelSelector": s.LabelSelector, "fieldSelector": s.FieldSelector, "shardSelector": s.ShardSelector} {
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
