package admission

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// validate calls the check of e.
func validate(ctx context.Context, e *endpoint, r *request) *answer {
	before, after, a := objectsOf(ctx, e, r)
	if a != nil {
		return a
	}
	check := e.webhook.check
	err := check(ctx, before, after, e.client)
	if err == nil {
		return allowed()
	}
	f := findingsOf(err)
	switch {
	case f.isTransient:
		return unavailable(err)
	case f.hasOther:
		return refused(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
	}
	if e.isStrict {
		for _, each := range f.fields {
			if problem := pathProblem(e.schema, each.Field); problem != "" {
				return failed(fmt.Sprintf("%s returned a field error with the path %q: %s", e.webhook, each.Field, problem))
			}
		}
	}
	if before != nil && after != nil && !e.webhook.Options.NoRatcheting {
		// Warnings about the old object are of no interest.
		muted := context.WithValue(ctx, callKey{}, &callState{Call: r.Call})
		err := check(muted, before, before, e.client)
		old := findingsOf(err)
		if old.isTransient {
			return unavailable(err)
		}
		added, same := f.split(old)
		for _, each := range same {
			Warn(ctx, each.Error())
		}
		f.fields = added
	}
	if len(f.fields) == 0 {
		return allowed()
	}
	return invalid(e.webhook.Type.Resource, r.name, f.fields)
}

// objectsOf returns the old object and the new object of r. It returns an answer instead if the check has nothing to do.
//
// An old object that does not fit the Go type, such as an object of an older schema, becomes nil. So its user can repair
// it: rules on transitions see a new object, and the other rules hold for all of it. Its deletion is allowed.
func objectsOf(ctx context.Context, e *endpoint, r *request) (before, after any, a *answer) {
	if r.Subresource != "" {
		return scaleObjects(ctx, e, r)
	}
	before, err := e.decode(r.oldObject)
	if err != nil {
		Warn(ctx, "the stored object does not fit its type, so "+e.webhook.String()+" takes it for a new one: "+err.Error())
		if r.object == nil {
			return nil, nil, allowed()
		}
	}
	if after, err = e.decode(r.object); err != nil {
		return nil, nil, refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the object does not fit its type: "+err.Error())
	}
	return before, after, nil
}
