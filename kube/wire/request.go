package wire

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// The content types of patches, and of everything else.
const (
	ContentJSON           = "application/json"
	ContentApply          = "application/apply-patch+yaml"
	ContentMergePatch     = "application/merge-patch+json"
	ContentJSONPatch      = "application/json-patch+json"
	ContentStrategicPatch = "application/strategic-merge-patch+json"
)

// Request is one call to an API server, before it has a URL. A Handler must not change it. To
// pass on something else, a Handler passes on a copy.
type Request struct {
	// Cluster is the name of another cluster. It is always empty today: a client of kube.NewClient has one server, the
	// home cluster.
	Cluster string
	Verb    Verb
	// Resource is the zero value in a request for the list of all groups (/apis). A request without Resource.Plural is
	// for the list of the resources of a version, such as /apis/apps/v1.
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
	// Adopt is set by kube.Adopt. It is not sent.
	Adopt bool
	// Live is true if no cache may answer: see kube.Client.Live. It is not sent.
	Live bool
	// WantsBodyReader is true for a get whose answer is read bit by bit, as the answer to a watch is: see
	// Response.BodyReader. It is not sent.
	WantsBodyReader bool
	// AcceptsProtobuf is true for a request of MetadataOnly whose answer may also be in the protobuf of Kubernetes. A
	// server without protobuf for the kind answers with JSON.
	AcceptsProtobuf bool
}

// Preconditions name the one object, or the one version of an object, that a write is for.
type Preconditions struct {
	UID             types.UID
	ResourceVersion string
}

// Ref returns the object that r is about.
//
//go:noinline
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

// Representation is how much of its objects a request asks for: one of the constants, or the representation
// of a projection, which kube.TypeOf returns.
type Representation string

const (
	// Full is the whole object.
	Full Representation = ""
	// MetadataOnly is a PartialObjectMetadata in place of every object.
	MetadataOnly Representation = "metadata"
)

// projectionPrefix begins the Representation of a projection. The fields follow.
const projectionPrefix = "fields:"

// Projection returns the representation of objects with only some fields. fields is the text of the fields, as
// kube.TypeOf makes it.
func Projection(fields string) Representation { return Representation(projectionPrefix + fields) }

// ProjectedFields returns the fields of a projection, and reports whether r is the representation of a
// projection.
func (r Representation) ProjectedFields() (fields string, ok bool) {
	return strings.CutPrefix(string(r), projectionPrefix)
}
