package admission

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/kube"
)

// checkErrors are the errors that the error of a check consists of.
type checkErrors struct {
	fields []*field.Error
	// hasOther is true if there are errors that are no field errors.
	hasOther bool
	// isTransient is true if one of the errors may pass by itself.
	isTransient bool
}

// checkErrorsOf returns the errors in the tree of err. Example: errors.Join(field.Required(…), fmt.Errorf("the spec:
// %w", field.Invalid(…))) has two field errors and nothing else.
func checkErrorsOf(err error) checkErrors {
	var e checkErrors
	e.add(err)
	return e
}

// add adds the errors in the tree of err. It reports whether all of them are field errors.
func (e *checkErrors) add(err error) bool {
	var several []error
	switch t := err.(type) { //nolint:errorlint // it walks over the tree itself
	case nil:
		return true
	case *field.Error:
		e.fields = append(e.fields, t)
		return true
	case interface{ Unwrap() []error }:
		several = t.Unwrap()
	case interface{ Errors() []error }: // a list of field errors as one error
		several = t.Errors()
	default:
		if inner := errors.Unwrap(err); inner != nil {
			if _, isField := errors.AsType[*field.Error](err); isField {
				return e.add(inner)
			}
		}
		e.hasOther = true
		e.isTransient = e.isTransient || isTransient(err)
		return false
	}
	areFields := true
	for _, each := range several {
		areFields = e.add(each) && areFields
	}
	return areFields
}

// isTransient reports whether err may pass by itself: the API server cannot be reached, a timeout, an answer 429 or
// 5xx, or an ended context.
func isTransient(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	e, ok := kube.AsError(err)
	return ok &&
		(kube.IsUnreachable(err) || e.Code == http.StatusTooManyRequests || e.Code >= http.StatusInternalServerError)
}
