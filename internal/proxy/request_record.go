package proxy

import (
	"fmt"
	"time"
)

// RequestRecord is the record of a request of a program.
type RequestRecord struct {
	// Point names the request. Its resource is empty if the path does not name a resource.
	Point   Point
	Session string
	// Namespace and Name are not normalized. Name is empty for lists and creates without a name.
	Namespace, Name string
	Path, UserAgent string
	// Code is the HTTP status that the program received. It is 0 before the answer, and if there is no
	// answer.
	Code int
	// Began is when the request came. Sent is when the proxy sent the request on to the server, and Answered is
	// when the head of the server's answer came. Ended is when all of the answer was forwarded. Each of them is
	// zero until then.
	Began, Sent, Answered, Ended time.Time

	// Fault is the kind of the fault that was armed for the request. It is empty if there was none.
	Fault string
	// IsOutOfBounds is true for a write that a [Confinement] has refused.
	IsOutOfBounds bool
	// IsClusterScoped is true for a write of an object that is in no namespace.
	IsClusterScoped bool
	// Version is the resource version of the object in the server's answer to a write that was carried
	// out. It is empty if the answer has no object, such as the answer to most deletions. [WriteRecorder] sets
	// it.
	Version string
	// Holder and LeaseDuration are fields of the Lease in the answer to a write of a Lease. Holder is empty
	// if nobody holds the Lease. [WriteRecorder] sets them.
	Holder        string
	LeaseDuration time.Duration
	// AnswerHash is a hash of the names and resource versions in the answer to a get or a list. It is 0 for all other
	// requests, and for Leases and Events. [ReadRecorder] sets it.
	AnswerHash uint64
}

// String returns the request in short, such as: patch deployments.apps/status default/web.
func (r RequestRecord) String() string {
	what := r.Point.Resource
	if what == "" {
		what = r.Path
	}
	if r.Point.Subresource != "" {
		what += "/" + r.Point.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", r.Point.Verb, what, r.Namespace, r.Name)
}
