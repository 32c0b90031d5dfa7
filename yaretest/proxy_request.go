package yaretest

import (
	"fmt"
	"time"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/kube/wire"
)

// Request is a request that came through a [Proxy].
type Request struct {
	UserAgent string
	Verb      wire.Verb
	// Resource is the plural name and the group, such as deployments.apps. It is empty if the
	// path is not the path of a resource.
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Path        string
	// Code is the HTTP status of the answer. It is 0 before the answer, and without an answer.
	Code int
	// Began is when the request came. Answered is when the head of the server's answer came.
	// Ended is when all of the answer was forwarded. Answered and Ended are zero until then.
	Began, Answered, Ended time.Time
}

// newRequest returns the request of a record.
func newRequest(r proxy.RequestRecord) Request {
	return Request{
		UserAgent: r.UserAgent, Verb: wire.Verb(r.Point.Verb), Resource: r.Point.Resource, Subresource: r.Point.Subresource,
		Namespace: r.Namespace, Name: r.Name, Path: r.Path, Code: r.Code, Began: r.Began, Answered: r.Answered,
		Ended: r.Ended,
	}
}

// String returns the request in short, such as: patch deployments.apps/status default/web 200.
func (r Request) String() string {
	what := r.Resource
	if what == "" {
		what = r.Path
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s %d", r.Verb, what, r.Namespace, r.Name, r.Code)
}
