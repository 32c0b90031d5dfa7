package kube

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube/wire"
)

// messagePattern matches the messages that begin with prefix and contain part.
type messagePattern struct{ prefix, part string }

func (p messagePattern) matches(message string) bool {
	return strings.HasPrefix(message, p.prefix) && strings.Contains(message, p.part)
}

// finalRefusals returns the messages of API servers that refuse a request for good and answer 500. An API server finds
// each of these mistakes before it stores anything. TestFinalRefusals gets each message from a real server.
func finalRefusals() []messagePattern {
	return []messagePattern{
		// An apply has a duplicate key in a list, a field that the schema does not declare, or a value of the wrong type.
		{prefix: "failed to create typed patch object ("},
		// An apply has a text that is no quantity, time or base64. A conversion webhook that does not answer leads to a
		// message with the same beginning.
		{prefix: "failed to convert new object (", part: ") to proper version: unable to convert unstructured object to "},
		// A strategic merge patch is wrong.
		{prefix: "map: map[", part: "] does not contain declared merge key: "},
		{prefix: "unknown patch type: "},
		{prefix: "resourceVersion should not be set on objects to be created"},
		// The object is too large for etcd (1.5 MiB), or for a message to etcd (2 MiB).
		{prefix: "etcdserver: request is too large"},
		{prefix: "rpc error: code = ResourceExhausted desc = trying to send message larger than max "},
	}
}

// isFinalRefusal reports whether status is the refusal of a request that a server would refuse again, although the code
// says that the server failed. An example is "failed to create typed patch object (n/web; apps/v1, Kind=Deployment):
// .spec.template.spec.containers[name="web"].env: duplicate entries for key [name="LEVEL"]".
func isFinalRefusal(status *metav1.Status) bool {
	return status.Code == http.StatusInternalServerError &&
		slices.ContainsFunc(finalRefusals(), func(p messagePattern) bool { return p.matches(status.Message) })
}

// isNotCarriedOut reports whether status, the answer to r, says that the server has not carried out r: the refusal is
// final, or a webhook has denied the request. Each object of a collection is deleted by itself, so the refusal of one
// deletion says nothing about the others.
func isNotCarriedOut(r *wire.Request, status *metav1.Status) bool {
	return r.Verb != wire.VerbDeleteCollection && (isFinalRefusal(status) || isDenial(status))
}

// isDenial reports whether status says that a webhook has denied the request (ToStatusErr in k8s.io/apiserver). The
// webhook chooses the code.
func isDenial(status *metav1.Status) bool {
	return messagePattern{prefix: `admission webhook "`, part: `" denied the request`}.matches(status.Message)
}
