package kube

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/internal/kubejson"
)

// Verb is the action of a request, in the words of RBAC.
type Verb string

// The verbs of the API.
const (
	VerbGet              Verb = "get"
	VerbList             Verb = "list"
	VerbWatch            Verb = "watch"
	VerbCreate           Verb = "create"
	VerbUpdate           Verb = "update"
	VerbPatch            Verb = "patch"
	VerbDelete           Verb = "delete"
	VerbDeleteCollection Verb = "deletecollection"
)

// IsWrite reports whether the verb can change something.
func (v Verb) IsWrite() bool { return v != VerbGet && v != VerbList && v != VerbWatch }

// The content types of patches, and of everything else.
const (
	ContentJSON           = "application/json"
	ContentApply          = "application/apply-patch+yaml"
	ContentMergePatch     = "application/merge-patch+json"
	ContentJSONPatch      = "application/json-patch+json"
	ContentStrategicPatch = "application/strategic-merge-patch+json"
)

// Representation is how much of its objects a request asks for: one of the constants, or the representation
// of a projection, which [TypeOf] returns.
type Representation string

const (
	// Full is the whole object.
	Full Representation = ""
	// MetadataOnly is a PartialObjectMetadata in place of every object.
	MetadataOnly Representation = "metadata"
)

// Request is one call to an API server, before it has a URL. A Handler must not change it. To
// pass on something else, a Handler passes on a copy.
type Request struct {
	// Cluster is empty for the home cluster.
	Cluster     string
	Verb        Verb
	Resource    Resource
	Namespace   string
	Name        string
	Subresource string
	// Query holds further parameters, such as labelSelector or fieldManager. A get with
	// parameters is not answered from a cache.
	Query url.Values
	// Body is empty for requests without a body.
	Body []byte
	// ContentType is the content type of Body. Default: [ContentJSON].
	ContentType string
	// Header holds further headers of the request. The client sets Accept and Content-Type.
	Header         http.Header
	Representation Representation
	// Matches are further conditions on the objects of a list. A handler that answers with
	// Items applies them. The caller applies them to the objects in a Body.
	Matches []Match
	// Preconditions are a copy of the preconditions in Body, so that handlers need not decode Body.
	Preconditions Preconditions
	// Adopt is set by [Adopt]. It is not sent.
	Adopt bool
	// Live is true if no cache may answer: see [Client.Live]. It is not sent.
	Live bool
	// Streams is true for a get whose answer comes as a Stream, as the answer to a watch does. It is
	// not sent.
	Streams bool
}

// Preconditions name the one object, or the one version of an object, that a write is for.
type Preconditions struct {
	UID             types.UID
	ResourceVersion string
}

// Ref returns the object that r is about.
func (r *Request) Ref() Ref {
	return Ref{Cluster: r.Cluster, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name, UID: r.Preconditions.UID}
}

// ObjectName returns the name of the object that r is about. A create has the name only in its
// Body. The name is empty if the server generates it.
func (r *Request) ObjectName() string {
	if r.Name != "" || r.Verb != VerbCreate {
		return r.Name
	}
	var object ident.Answer
	if kubejson.Unmarshal(r.Body, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}

// Response is the answer to a request, as the bytes of the server.
type Response struct {
	Code   int
	Header http.Header
	// Body is the whole answer. It is empty if there is a Stream.
	Body []byte
	// Stream is the answer to a watch, and to a request with Streams. The caller closes it.
	// After a switch of protocols (Code 101) it is an io.ReadWriteCloser.
	Stream io.ReadCloser
	// Pings is true if the transport of the Stream checks the connection by pings, as HTTP/2 does. A Stream
	// without pings may be dead without an error.
	Pings bool
	// Cached is true if no request was sent for the answer.
	Cached bool
	// Items are the objects of a list that was not read from the server, in place of Body. A [*DecodeError]
	// stands for an object that cannot be read. Any other error is in the last pair. The sequence reads an
	// object just before it yields the object.
	Items iter.Seq2[jsontext.Value, error]
}

// Handler serves requests. For an answer other than 2xx it returns an [*Error]. It must be safe
// for concurrent use, and must return when ctx ends.
type Handler interface {
	Do(ctx context.Context, r *Request) (*Response, error)
}

// HandlerFunc is a function that serves requests as a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (*Response, error)

// Do calls f.
func (f HandlerFunc) Do(ctx context.Context, r *Request) (*Response, error) { return f(ctx, r) }
