package admission

import (
	"errors"
	"slices"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube"
)

// The types of this file are those of k8s.io/api/admission/v1, with only the fields that a handler uses.

const reviewVersion = "admission.k8s.io/v1"

// errOtherReview is the error of an AdmissionReview of another version than v1.
var errOtherReview = errors.New("the AdmissionReview is not of version " + reviewVersion)

// request is the request of an AdmissionReview.
type request struct {
	Call
	uid, namespace, name string
	// version is the version of the objects.
	version string
	// object and oldObject are JSON. They are nil if the request has none, as in a deletion.
	object, oldObject []byte
}

// parseRequest returns the request of an AdmissionReview. The request refers to body.
func parseRequest(body []byte) (*request, error) {
	var version string
	var content []byte
	if !jsonscan.ValidMembers(body, func(name, value []byte) {
		switch string(name) {
		case "apiVersion":
			version = textOf(value)
		case "request":
			content = value
		}
	}) {
		return nil, jsonscan.ErrNotJSON
	}
	if version != reviewVersion {
		return nil, errOtherReview
	}
	r := &request{}
	var err error
	eachMember(content, func(name string, value []byte) {
		switch name {
		case "uid":
			r.uid = textOf(value)
		case "namespace":
			r.namespace = textOf(value)
		case "name":
			r.name = textOf(value)
		case "operation":
			r.Operation = textOf(value)
		case "subResource":
			r.Subresource = textOf(value)
		case "kind":
			r.version = textOf(memberOf(value, "version"))
		case "dryRun":
			r.DryRun = string(value) == "true"
		case "userInfo":
			err = kube.Unmarshal(value, &r.User)
		case "object":
			r.object = objectOf(value)
		case "oldObject":
			r.oldObject = objectOf(value)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains([]string{"CREATE", "UPDATE", "DELETE"},
		r.Operation): // metrics have it as a label, and anybody can send a review
		return nil, errors.New("the AdmissionReview has no operation that a webhook of this program is called for")
	case r.uid == "" || r.object == nil && r.oldObject == nil:
		return nil, errors.New("the AdmissionReview has no request with a uid and an object")
	case r.name == "": // in a deletion of a collection, and where the server generates the name
		r.name = textOf(memberOf(memberOf(r.anyObject(), "metadata"), "name"))
	}
	return r, nil
}

// anyObject returns the new object, or else the old object.
func (r *request) anyObject() []byte {
	if r.object != nil {
		return r.object
	}
	return r.oldObject
}
