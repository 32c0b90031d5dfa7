package admission

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// findings are the errors in the error that a check has returned.
type findings struct {
	fields []*field.Error
	// hasOther is true if there are errors that are no field errors.
	hasOther bool
	// isTransient is true if one of the errors may pass by itself.
	isTransient bool
}

// findingsOf returns the errors in the tree of err. Example: errors.Join(field.Required(…), fmt.Errorf("the spec: %w",
// field.Invalid(…))) has two field errors and nothing else.
func findingsOf(err error) findings {
	var f findings
	f.add(err)
	return f
}

// add adds the errors in the tree of err. It reports whether all of them are field errors.
func (f *findings) add(err error) bool {
	var several []error
	switch e := err.(type) { //nolint:errorlint // it walks over the tree itself
	case nil:
		return true
	case *field.Error:
		f.fields = append(f.fields, e)
		return true
	case interface{ Unwrap() []error }:
		several = e.Unwrap()
	case interface{ Errors() []error }: // a list of field errors as one error
		several = e.Errors()
	default:
		if _, isField := errors.AsType[*field.Error](err); isField {
			return f.add(errors.Unwrap(err))
		}
		f.hasOther = true
		f.isTransient = f.isTransient || isTransient(err)
		return false
	}
	areFields := true
	for _, each := range several {
		areFields = f.add(each) && areFields
	}
	return areFields
}

// isTransient reports whether err may pass by itself: the API server cannot be reached, a timeout, an answer 429 or 5xx,
// or an ended context.
func isTransient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	e, ok := kube.AsError(err)
	return ok && (kube.IsUnreachable(err) || e.Code == http.StatusTooManyRequests || e.Code >= http.StatusInternalServerError)
}

// split returns the field errors of f that old lacks, and the field errors that old has too.
func (f findings) split(old findings) (added, same []*field.Error) {
	for _, each := range f.fields {
		into := &added
		for _, other := range old.fields {
			if each.Type == other.Type && each.Field == other.Field && each.ErrorBody() == other.ErrorBody() {
				into = &same
			}
		}
		*into = append(*into, each)
	}
	return added, same
}

// invalidAnswer returns the answer with the Status that an API server has for these field errors of an object.
func invalidAnswer(r wire.Resource, name string, all []*field.Error) *answer {
	details := &metav1.StatusDetails{Name: name, Group: r.Group, Kind: r.Kind}
	message := ""
	for _, each := range all {
		if message != "" {
			message += ", "
		}
		message += each.Error()
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseType(each.Type), Message: each.ErrorBody(), Field: each.Field,
		})
	}
	if len(all) > 1 {
		message = "[" + message + "]"
	}
	a := refusedAnswer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, r.Kind+"."+r.Group+` "`+name+`" is invalid: `+message)
	a.status.Details = details
	return a
}
