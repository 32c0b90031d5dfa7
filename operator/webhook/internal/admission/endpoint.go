package admission

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/calls/serving"
)

// endpoint is a webhook of a Handler.
type endpoint struct {
	webhook *Webhook
	path    string
	// client reads for the function.
	client *kube.Client
	// schemaOf returns the schema of the objects, which is empty for a kind of others. It makes the schema once, at the first call or, if it is needed for each
	// call of the webhook, at the start.
	schemaOf func() (*crd.Schema, error)
	isStrict bool
	// calls has a place for each function that has not returned.
	calls *serving.Places
}

func newEndpoint(w *Webhook, options Options) (*endpoint, error) {
	e := &endpoint{
		webhook: w, path: w.Path(), client: options.Client.With(readOnly(w)), isStrict: options.IsStrict,
		calls: serving.NewPlaces(int64(options.MaxCalls)),
	}
	e.schemaOf = sync.OnceValues(func() (*crd.Schema, error) { return schemaOf(w.Type) })
	if w.IsForeign() {
		e.schemaOf = func() (*crd.Schema, error) { return new(crd.Schema), nil } // it allows everything
	}
	if !options.IsStrict && !w.IsMutating {
		return e, nil
	}
	_, err := e.schemaOf()
	return e, err
}

// schemaOf returns the schema of the objects of t.
func schemaOf(t kube.Type) (*crd.Schema, error) {
	definition := *t.Definition
	definition.Source, definition.OtherSources = nil, nil // nobody reads the descriptions, and parsing takes time
	t.Definition = &definition
	all, err := crd.From(t)
	if err != nil {
		return nil, err
	}
	return all[0].Spec.Versions[0].Schema.OpenAPIV3Schema, nil
}

// parseRequest returns the request of a call with this body, or the answer if there is none.
func (e *endpoint) parseRequest(body []byte) (*request, *answer) {
	request, err := parseRequest(body)
	own := e.webhook.Type.Resource.Version
	switch {
	case errors.Is(err, errOtherReview):
		return nil, unavailableAnswer(err) // another replica, of another release, may know the version
	case err != nil:
		return nil, errorAnswer(http.StatusBadRequest, ResultFailed, err)
	case request.Subresource == "" && request.version != own:
		return nil, unavailableAnswer(fmt.Errorf("%s is called about objects of version %s, and not of %s",
			e.webhook, own, request.version))
	}
	return request, nil
}

// decode returns a pointer to the Go type of e with the content of object.
func (e *endpoint) decode(object []byte) (any, error) { return e.webhook.decode(e.client, object) }

// fieldErrors returns the field errors in the error of the function. If the error has others too, fieldErrors returns the
// answer that follows from them.
func (e *endpoint) fieldErrors(err error) ([]*field.Error, *answer) {
	f := checkErrorsOf(err)
	switch {
	case f.isTransient:
		return nil, unavailableAnswer(err)
	case f.hasOther:
		return nil, refusedAnswer(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
	case !e.isStrict:
		return f.fields, nil
	}
	schema, err := e.schemaOf()
	if err != nil {
		return nil, failedAnswer(err.Error())
	}
	for _, each := range f.fields {
		if problem := pathProblem(schema, each.Field); problem != "" {
			return nil, failedAnswer(fmt.Sprintf("%s returned a field error with the path %q: %s", e.webhook, each.Field, problem))
		}
	}
	return f.fields, nil
}
