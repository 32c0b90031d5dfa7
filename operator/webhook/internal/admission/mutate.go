package admission

import (
	"context"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// mutate calls the mutator of e, and returns the answer with the patch of what the mutator has changed.
func mutate(ctx context.Context, e *endpoint, r *request) *answer {
	p, result, a := runMutator(ctx, e, r, r.object)
	if a != nil {
		return a
	}
	if e.isStrict && p.text != nil {
		muted := context.WithValue(ctx, callKey{}, &callState{Call: r.Call})
		if again, _, a := runMutator(muted, e, r, result); a != nil || again.text != nil {
			return failedAnswer(e.webhook.String() + " changes its own result when it is called again: let it look for what it has added, and let nothing depend on time, chance or the number of calls")
		}
	}
	a = allowedAnswer()
	if p.text != nil {
		a.patch = append(p.text, ']')
	}
	return a
}

// runMutator calls the mutator of e for an object. It returns the patch and the encoded result, or else the answer to
// the request r.
func runMutator(ctx context.Context, e *endpoint, r *request, request []byte) (p patch, result []byte, a *answer) {
	object, err := e.decode(request)
	if err != nil {
		return p, nil, failedAnswer("the object does not fit its type: " + err.Error())
	}
	before, err := kube.Marshal(object)
	if err == nil {
		if err := e.webhook.mutate(ctx, object, e.client); err != nil {
			fields, a := e.fieldErrors(err)
			if a == nil {
				a = invalidAnswer(e.webhook.Type.Resource, r.name, fields)
			}
			return p, nil, a
		}
		result, err = kube.Marshal(object)
	}
	if err != nil {
		return p, nil, failedAnswer(e.webhook.String() + ": " + err.Error())
	}
	p.compare("", jsontree.Parse(before), jsontree.Parse(result), jsontree.Parse(request))
	return p, result, nil
}
