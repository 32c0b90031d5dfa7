package admission

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/kube/wire"
)

// applyScale makes of r, a write to the scale of an object, the request that it means for the object: the old object is the
// live one, and the new object has the number of the Scale. It returns nil, or the answer if there is no such request.
func applyScale(ctx context.Context, e *endpoint, r *request) *answer {
	definition := e.webhook.Type.Definition
	response, err := e.client.Do(ctx, &wire.Request{
		Verb: wire.VerbGet, Resource: e.webhook.Type.Resource, Namespace: r.namespace, Name: r.name, Live: true,
	})
	if err == nil && !jsonscan.ValidMembers(response.Body, func([]byte, []byte) {}) {
		err = jsonscan.ErrNotJSON
	}
	switch {
	case err != nil && isTransient(err):
		return unavailable(err)
	case err != nil:
		return refused(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
	}
	live, scale := memberOf(response.Body, "metadata"), memberOf(r.object, "metadata")
	for _, name := range []string{"uid", "resourceVersion"} {
		if want := textOf(memberOf(scale, name)); want != "" && want != textOf(memberOf(live, name)) {
			return refused(http.StatusConflict, metav1.StatusReasonConflict, "the object has changed since its scale was read: repeat the request")
		}
	}
	path := ".spec.replicas"
	if definition.Scale != nil && definition.Scale.SpecReplicas != "" {
		path = definition.Scale.SpecReplicas
	}
	replicas := memberOf(memberOf(r.object, "spec"), "replicas")
	if replicas == nil {
		replicas = []byte("0") // a Scale leaves a zero out
	}
	r.oldObject = response.Body
	if r.object = withValue(response.Body, strings.Split(path, ".")[1:], replicas); r.object == nil {
		return failed(e.webhook.String() + ": the object has no place for the path of the scale, " + path)
	}
	return nil
}

// withValue returns a JSON object with value at path. Objects on the path that are not there are added. It returns nil if
// something else is on the path. Example: {"spec":{"replicas":1}} with 3 at spec, replicas is {"spec":{"replicas":3}}.
func withValue(object []byte, path []string, value []byte) []byte {
	if len(path) == 0 {
		return value
	}
	old := memberOf(object, path[0])
	switch {
	case object == nil || string(object) == "null":
		object = []byte("{}")
	case !isKind(object, '{'):
		return nil
	}
	inner := withValue(old, path[1:], value)
	if inner == nil {
		return nil
	}
	result := []byte{'{'}
	eachMember(object, func(name string, old []byte) {
		if name != path[0] {
			result = appendMember(result, name, old)
		}
	})
	return append(appendMember(result, path[0], inner), '}')
}
