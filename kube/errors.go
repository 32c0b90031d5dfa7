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

// HasReason reports whether the server refused a request for a reason, such as metav1.StatusReasonUnauthorized. For the
// reasons that most programs meet there are functions, such as [IsNotFound] and [IsConflict]. An answer without a
// reason has that of its HTTP status. StatusReasonGone includes StatusReasonExpired: a resource version or a continue
// token is too old to go on from. It does not concern objects that were deleted: see [IsNotFound].
func HasReason(err error, reason metav1.StatusReason) bool {
	e, ok := AsError(err)
	if !ok || e.Code == 0 {
		return false
	}
	switch got := e.Answer.Reason; got {
	case "":
		return reason == reasonOfCode(e.Code)
	case metav1.StatusReasonExpired:
		return reason == got || reason == metav1.StatusReasonGone
	default:
		return reason == got
	}
}

// reasonOfCode returns the reason that an HTTP status stands for.
func reasonOfCode(code int) metav1.StatusReason {
	switch code {
	case http.StatusBadRequest:
		return metav1.StatusReasonBadRequest
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusGone:
		return metav1.StatusReasonGone
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	default:
		return metav1.StatusReasonUnknown
	}
}

// IsNotFound reports whether the server serves the resource and has no such object. A resource
// that the server does not serve is not included: see [IsNoResource].
func IsNotFound(err error) bool {
	return HasReason(err, metav1.StatusReasonNotFound) && !IsNoResource(err)
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
func IsAlreadyExists(err error) bool { return HasReason(err, metav1.StatusReasonAlreadyExists) }

// IsConflict reports whether a write failed because the object has changed since it was read,
// because a precondition names another object, or because another field manager owns a field. See
// [IsUIDConflict] and [IsApplyConflict].
func IsConflict(err error) bool {
	return HasReason(err, metav1.StatusReasonConflict)
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
		return !slices.ContainsFunc(e.Answer.Details.Causes,
			func(c metav1.StatusCause) bool { return c.Field != "metadata.uid" })
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
	return HasReason(err, metav1.StatusReasonInvalid)
}

// IsForbidden reports whether the server forbids the request (403).
func IsForbidden(err error) bool {
	return HasReason(err, metav1.StatusReasonForbidden)
}

// IsTooManyRequests reports whether the server, or a disruption budget, asks to wait.
func IsTooManyRequests(err error) bool {
	return HasReason(err, metav1.StatusReasonTooManyRequests)
}

// IsUnknown reports whether a write may have been carried out although it failed: the
// connection broke, or the server failed (5xx). A refusal that a server sends with 5xx is not included, such as that of
// an apply with a duplicate key, or the denial of a webhook.
func IsUnknown(err error) bool {
	e, ok := AsError(err)
	return ok && e.Unknown
}

// IsUnreachable reports whether the server sent no answer at all, although the caller waited for it.
func IsUnreachable(err error) bool {
	e, ok := AsError(err)
	return ok && e.Code == 0 && !e.Permanent
}
