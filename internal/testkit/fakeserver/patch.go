package fakeserver

import (
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// patched returns the live object after the JSON patch or the merge patch of r, by the library of API servers. A JSON
// patch that fails is a 422 without details, as a real server answers.
func patched(r *wire.Request, live *object) (map[string]any, error) {
	if r.ContentType != wire.ContentJSONPatch {
		after, err := jsonpatch.MergePatch(live.text, r.Body)
		if err != nil {
			return nil, badRequest(r, err.Error())
		}
		return decoded(after), nil
	}
	patch, err := jsonpatch.DecodePatch(r.Body)
	if err != nil {
		return nil, badRequest(r, err.Error())
	}
	after, err := patch.Apply(live.text)
	if err != nil {
		e := refusalOf(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the server rejected our request due to an error in our request: "+err.Error())
		e.Answer.Details = &metav1.StatusDetails{}
		return nil, e
	}
	return decoded(after), nil
}
