package admission

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// scaleObjects returns what r, a write to the scale of an object, means for the object: before is the live object, and
// after has the number of the Scale. It returns an answer instead if there are no such objects.
func scaleObjects(ctx context.Context, e *endpoint, r *request) (before, after any, a *answer) {
	if a = readLive(ctx, e, r, &before, &after); a != nil {
		return nil, nil, a
	}
	live, scale := before.(metav1.Object), memberOf(r.object, "metadata")
	uid, version := textOf(memberOf(scale, "uid")), textOf(memberOf(scale, "resourceVersion"))
	if uid != "" && uid != string(live.GetUID()) || version != "" && version != live.GetResourceVersion() {
		return nil, nil, refusedAnswer(http.StatusConflict, metav1.StatusReasonConflict,
			"the object has changed since its scale was read: repeat the request")
	}
	path := ".spec.replicas"
	if d := e.webhook.Type.Definition; d != nil && d.Scale != nil && d.Scale.SpecReplicas != "" {
		path = d.Scale.SpecReplicas
	}
	number := string(memberOf(memberOf(r.object, "spec"), "replicas"))
	if number == "" {
		number = "0" // a Scale leaves a zero out
	}
	// Only the number of {"spec":{"replicas":3}} is decoded into the object. The rest of it stays.
	text := `{"` + strings.ReplaceAll(path[1:], ".", `":{"`) + `":` + number +
		strings.Repeat("}", strings.Count(path, "."))
	if err := kube.Unmarshal([]byte(text), after); err != nil {
		return nil, nil, failedAnswer(
			e.webhook.String() + ": the number of the scale does not fit the object at " + path + ": " + err.Error())
	}
	return before, after, nil
}

// evictedObject returns the Pod that r, an eviction, would delete. There is no object after an eviction.
func evictedObject(ctx context.Context, e *endpoint, r *request) (before, after any, a *answer) {
	a = readLive(ctx, e, r, &before)
	return before, nil, a
}

// readLive sets each of objects to the live object that r is about. It returns an answer if there is none.
func readLive(ctx context.Context, e *endpoint, r *request, objects ...*any) *answer {
	response, err := e.client.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: e.webhook.Type.Resource, Namespace: r.namespace, Name: r.name, Live: true,
	})
	for _, each := range objects {
		if err == nil {
			*each, err = e.decode(response.Body)
		}
	}
	switch {
	case err == nil:
		return nil
	case isTransient(err):
		return unavailableAnswer(err)
	case r.Subresource == subresourceEviction && kube.IsNotFound(err):
		return allowedAnswer() // the API server answers that there is no such Pod
	case e.webhook.IsForeign():
		return failedAnswer(err.Error())
	default:
		return refusedAnswer(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
	}
}
