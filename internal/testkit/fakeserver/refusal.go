package fakeserver

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/merge"

	"github.com/yare-go/yare/kube/wire"
)

// Refusal returns the error that a server answers r with. The fields are the causes.
func Refusal(r *wire.Request, code int, reason metav1.StatusReason, fields ...string) *wire.Error {
	e := &wire.Error{Verb: r.Verb, Ref: r.Ref(), Subresource: r.Subresource, Code: code, Answer: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused",
		Details: &metav1.StatusDetails{Name: r.Name, Group: r.Resource.Group, Kind: r.Resource.Plural},
	}}
	for _, field := range fields {
		e.Answer.Details.Causes = append(e.Answer.Details.Causes, metav1.StatusCause{Field: field})
	}
	return e
}

func refusalOf(r *wire.Request, code int, reason metav1.StatusReason, message string) *wire.Error {
	e := Refusal(r, code, reason)
	e.Answer.Message = message
	return e
}

// applyConflict returns the answer to an apply of fields that others own.
func applyConflict(r *wire.Request, conflicts merge.Conflicts) *wire.Error {
	e := refusalOf(r, http.StatusConflict, metav1.StatusReasonConflict,
		fmt.Sprintf("Apply failed with %d conflicts", len(conflicts)))
	e.Answer.Details = &metav1.StatusDetails{}
	for _, c := range conflicts {
		e.Answer.Details.Causes = append(e.Answer.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldManagerConflict, Field: c.Path.String(),
			Message: fmt.Sprintf("conflict with %q", decoded([]byte(c.Manager))["manager"]),
		})
	}
	return e
}

// badRequest returns the answer to a request that a server cannot read.
func badRequest(r *wire.Request, message string) *wire.Error {
	e := refusalOf(r, http.StatusBadRequest, metav1.StatusReasonBadRequest, message)
	e.Answer.Details = nil
	return e
}

// serverError returns the answer 500 without a reason, for a request that the server refuses before it stores anything.
func serverError(r *wire.Request, message string) *wire.Error {
	e := refusalOf(r, http.StatusInternalServerError, "", message)
	e.Answer.Details = nil
	return e
}

// invalid returns the answer to a request with an object or a parameter that is not allowed. The server names
// the kind and not the resource then.
func invalid(r *wire.Request, cause metav1.CauseType, field string) *wire.Error {
	e := refusalOf(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, field+": "+string(cause))
	e.Answer.Details.Kind = r.Resource.Kind
	e.Answer.Details.Causes = []metav1.StatusCause{{Type: cause, Field: field}}
	return e
}

// invalidOptions returns the answer to a request with a parameter that is not allowed.
func invalidOptions(r *wire.Request, kind string, cause metav1.CauseType, field string) *wire.Error {
	e := invalid(r, cause, field)
	e.Answer.Details.Name, e.Answer.Details.Group, e.Answer.Details.Kind = "", "meta.k8s.io", kind
	return e
}
