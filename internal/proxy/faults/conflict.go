package faults

import (
	"net/http"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/proxy"
)

// Conflict is a kind of the family [singleRequest]. It lets somebody else change an annotation of the object directly before the
// request. The server itself refuses a write with 409 that names a resource version.
const Conflict Kind = "conflict"

// ConflictManager is the field manager of the changes of [Conflict]. The field managers of an exploration begin with
// "explorer-", as [ForeignManager] does.
const ConflictManager = "explorer-conflict"

// ChangedAnnotation is the annotation that [Conflict] changes.
const ChangedAnnotation = "explore.yare.dev/changed"

// newConflict returns a hook that changes the object of a request as somebody else would, before the server receives the request.
func newConflict(a *Armed, s stepContext) proxy.HookFunc {
	return func(x *proxy.Exchange, r *http.Request, next proxy.Next) (*http.Response, error) {
		annotations := map[string]any{ChangedAnnotation: time.Now().Format(time.RFC3339Nano)}
		patch := map[string]any{"metadata": map[string]any{"annotations": annotations}}
		exists, err := s.admin.Patch(r.Context(), strings.TrimSuffix(x.Path, "/"+x.Subresource), ConflictManager, patch)
		if exists && err == nil {
			a.recordTriggered()
		}
		return next(r)
	}
}

// isOfExistingObject reports whether a request writes an object that exists before the request. code is the HTTP status of the
// answer in a reference.
func isOfExistingObject(p proxy.Point, code int) bool {
	isOfObject := p.IsWrite() && p.Name != "" && p.Verb != "create"
	return isOfObject && code != http.StatusCreated && code != http.StatusNotFound
}
