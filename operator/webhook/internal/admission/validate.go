package admission

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// validate calls the check of e, and returns the answer that follows from its error.
func validate(ctx context.Context, e *endpoint, r *request) *answer {
	before, after, a := objectsOf(ctx, e, r)
	if a != nil {
		return a
	}
	check := e.webhook.check
	err := check(ctx, before, after, e.client)
	if err == nil {
		return allowedAnswer()
	}
	fields, a := e.fieldErrors(err)
	if a != nil {
		return a
	}
	if before != nil && after != nil && !e.webhook.Options.NoRatcheting {
		// Warnings about the old object are of no interest.
		muted := context.WithValue(ctx, callKey{}, &callState{Call: r.Call})
		err := check(muted, before, before, e.client)
		old := checkErrorsOf(err)
		if old.isTransient {
			return unavailableAnswer(err)
		}
		schema, err := e.schemaOf()
		if err != nil {
			return failedAnswer(err.Error())
		}
		added, excused := ratchet(fields, newStablePaths(schema, after), old.fields, newStablePaths(schema, before))
		for _, each := range excused {
			Warn(ctx, each.Error())
		}
		fields = added
	}
	if len(fields) == 0 {
		return allowedAnswer()
	}
	return invalidAnswer(e.webhook.Type.Resource, r.name, fields)
}

// objectsOf returns the old object and the new object of r. Each is nil if r does not have it. It returns an answer
// instead if the check has nothing to do.
//
// An old object that does not fit the Go type, such as an object of an older schema, becomes nil. So its user can
// repair it: rules on transitions see a new object, and the other rules hold for all of it. Its deletion is allowed.
func objectsOf(ctx context.Context, e *endpoint, r *request) (before, after any, a *answer) {
	switch r.Subresource {
	case subresourceScale:
		return scaleObjects(ctx, e, r)
	case subresourceEviction:
		return evictedObject(ctx, e, r)
	}
	var err error
	if r.oldObject != nil {
		if before, err = e.decode(r.oldObject); err != nil {
			Warn(ctx, "the stored object does not fit its type, so "+e.webhook.String()+" takes it for a new one: "+err.Error())
			if r.object == nil {
				return nil, nil, allowedAnswer()
			}
		}
	}
	if r.object == nil {
		return before, nil, nil
	}
	if after, err = e.decode(r.object); err != nil {
		if e.webhook.IsForeign() {
			return nil, nil, failedAnswer("the object does not fit its type: " + err.Error())
		}
		return nil, nil, refusedAnswer(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			"the object does not fit its type: "+err.Error())
	}
	return before, after, nil
}
