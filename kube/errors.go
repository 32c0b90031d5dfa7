package kube

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// AsError returns the first Error in the tree of err. It reports false if there is none.
func AsError(err error) (*wire.Error, bool) {
	return errors.AsType[*wire.Error](err)
}

func hasReason(err error, code int, reasons ...metav1.StatusReason) bool {
	e, ok := AsError(err)
	if !ok || e.Code == 0 {
		return false
	}
	return slices.Contains(reasons, e.Answer.Reason) || e.Answer.Reason == "" && e.Code == code
}

// IsNotFound reports whether the server serves the resource and has no such object. A resource
// that the server does not serve is not included: see [IsNoResource].
func IsNotFound(err error) bool {
	return hasReason(err, http.StatusNotFound, metav1.StatusReasonNotFound) && !IsNoResource(err)
}

// IgnoreNotFound returns nil if err reports that the object is gone, and err otherwise. The object is
// gone if there is no object of its name ([IsNotFound]), or another object ([IsUIDConflict]).
func IgnoreNotFound(err error) error {
	if IsNotFound(err) || IsUIDConflict(err) {
		return nil
	}
	return err
}

// IsNoResource reports whether the server does not serve the resource at all. For a custom resource
// this means that its CustomResourceDefinition does not exist, or is not served yet.
func IsNoResource(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == http.StatusNotFound && (e.Answer.Details == nil || e.Answer.Details.Name == "")
}

// IsAlreadyExists reports whether a create failed because an object of that name exists.
func IsAlreadyExists(err error) bool { return hasReason(err, 0, metav1.StatusReasonAlreadyExists) }

// IsConflict reports whether a write failed because the object has changed since it was read,
// because a precondition names another object, or because another field manager owns a field. See
// [IsUIDConflict] and [IsApplyConflict].
func IsConflict(err error) bool {
	return hasReason(err, http.StatusConflict, metav1.StatusReasonConflict)
}

// IsApplyConflict reports whether an apply with [NoForce] failed because other field managers
// own fields that were to be applied. The causes in the error's Answer name them.
func IsApplyConflict(err error) bool {
	return IsConflict(err) && hasCause(err, metav1.CauseTypeFieldManagerConflict)
}

// IsUIDConflict reports whether a write failed only because the object of that name has another
// uid than the write names: the object was deleted, and another object was made under its name.
func IsUIDConflict(err error) bool {
	e, ok := AsError(err)
	switch {
	case !ok:
		return false
	case IsConflict(err):
		// The registry and the storage of an API server check the uid, each with a message of its
		// own. A conflict over the resourceVersion differs in nothing but the message.
		return strings.Contains(e.Answer.Message, "UID in the precondition") ||
			strings.Contains(e.Answer.Message, "UID in precondition")
	case IsInvalid(err) && e.Answer.Details != nil && len(e.Answer.Details.Causes) > 0:
		// For an apply of most resources the server answers that the uid cannot be changed.
		return !slices.ContainsFunc(e.Answer.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "metadata.uid" })
	default:
		return false
	}
}

// IsNamespaceTerminating reports whether the object could not be created because its namespace
// is being deleted.
func IsNamespaceTerminating(err error) bool { return hasCause(err, "NamespaceTerminating") }

// hasCause reports whether the answer of the server names a cause of that type.
func hasCause(err error, cause metav1.CauseType) bool {
	e, ok := AsError(err)
	return ok && e.Answer.Details != nil &&
		slices.ContainsFunc(e.Answer.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == cause })
}

// IsInvalid reports whether the server found the object, or a JSON patch, to be wrong. The
// causes in the error's Answer name the fields.
func IsInvalid(err error) bool {
	return hasReason(err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
}

// IsBadRequest reports whether the server did not understand the request.
func IsBadRequest(err error) bool {
	return hasReason(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

// IsForbidden reports whether the server forbids the request (403).
func IsForbidden(err error) bool {
	return hasReason(err, http.StatusForbidden, metav1.StatusReasonForbidden)
}

// IsUnauthorized reports whether the server does not accept the credentials.
func IsUnauthorized(err error) bool {
	return hasReason(err, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
}

// IsGone reports whether a resourceVersion or a continue token is too old to go on from. It
// does not concern objects that were deleted: see [IsNotFound].
func IsGone(err error) bool {
	return hasReason(err, http.StatusGone, metav1.StatusReasonExpired, metav1.StatusReasonGone)
}

// IsTooManyRequests reports whether the server, or a disruption budget, asks to wait.
func IsTooManyRequests(err error) bool {
	return hasReason(err, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
}

// IsUnknown reports whether a write may have been carried out although it failed: the
// connection broke, or the server failed (5xx).
func IsUnknown(err error) bool {
	e, ok := AsError(err)
	return ok && e.Unknown
}

// IsUnreachable reports whether the server sent no answer at all, although the caller waited for it.
func IsUnreachable(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == 0 && !e.Permanent
}
