package admission

import (
	"bytes"
	"context"
	"strings"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// addDefaults calls the defaulter of e, and returns the answer with the patch that adds what the defaulter has added.
//
// An object that does not fit the Go type is allowed without defaults: the API server checks the schema after the
// defaulters, and its error is the better one.
func addDefaults(ctx context.Context, e *endpoint, r *request) *answer {
	object, err := e.decode(r.object)
	if err != nil {
		return allowedAnswer()
	}
	d, result, err := runDefaulter(ctx, e, object, r.object)
	if err != nil {
		return failedAnswer(e.webhook.String() + ": " + err.Error())
	}
	a := allowedAnswer()
	switch {
	case !e.isStrict:
	case d.dropped != nil:
		a = failedAnswer(
			e.webhook.String() + " changes or removes what the request sets, or adds to an atomic list or map of the request: " +
				strings.Join(d.dropped, ", ") + "; a defaulter only adds")
	case d.patch != nil:
		var again difference
		if object, err = e.decode(result); err == nil {
			again, _, err = runDefaulter(ctx, e, object, result)
		}
		if err != nil || again.patch != nil || again.dropped != nil {
			return failedAnswer(e.webhook.String() + " changes its own result when it is called again: its defaults must not depend on time, chance or the number of calls")
		}
	}
	a.dropped = len(d.dropped)
	if d.patch != nil && a.status == nil {
		a.patch = append(d.patch, ']')
	}
	return a
}

// runDefaulter calls the defaulter of e, which changes object, the decoded request. It returns the difference and the
// encoded result.
func runDefaulter(
	ctx context.Context, e *endpoint, object any, request []byte,
) (d difference, result []byte, err error) {
	before, err := kube.Marshal(object)
	if err != nil {
		return d, nil, err
	}
	e.webhook.setDefaults(ctx, object)
	if result, err = kube.Marshal(object); err == nil && !bytes.Equal(before, result) {
		schema, err := e.schemaOf()
		if err != nil {
			return d, nil, err
		}
		d.compare("", schema, jsontree.Parse(before), jsontree.Parse(result), jsontree.Parse(request))
	}
	return d, result, err
}
