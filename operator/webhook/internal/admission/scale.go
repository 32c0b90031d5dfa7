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
	response, err := e.client.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: e.webhook.Type.Resource, Namespace: r.namespace, Name: r.name, Live: true,
	})
	if err == nil {
		before, err = e.decode(response.Body)
	}
	if err == nil {
		after, err = e.decode(response.Body)
	}
	switch {
	case err == nil:
	case isTransient(err):
		return nil, nil, unavailableAnswer(err)
	default:
		return nil, nil, refusedAnswer(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
	}
	live, scale := before.(metav1.Object), memberOf(r.object, "metadata")
	uid, version := textOf(memberOf(scale, "uid")), textOf(memberOf(scale, "resourceVersion"))
	if uid != "" && uid != string(live.GetUID()) || version != "" && version != live.GetResourceVersion() {
		return nil, nil, refusedAnswer(http.StatusConflict, metav1.StatusReasonConflict,
			"the object has changed since its scale was read: repeat the request")
	}
	path := ".spec.replicas"
	if s := e.webhook.Type.Definition.Scale; s != nil && s.SpecReplicas != "" {
		path = s.SpecReplicas
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
