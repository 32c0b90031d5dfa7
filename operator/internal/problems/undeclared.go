package problems

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// RefuseUndeclared returns a wrapper of handlers. The wrapper fails each request that no part declares,
// before the request is sent. The error has the status of a server that denies the request, and contains the
// expression to declare the request.
func RefuseUndeclared(checker *access.Checker) func(wire.Handler) wire.Handler {
	return func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			missing := checker.MissingVerbs(r)
			if len(missing) == 0 {
				return next.Do(ctx, r)
			}
			ref := r.Ref()
			ref.UID = ""
			return nil, &wire.Error{
				Verb: r.Verb, Ref: ref, Subresource: r.Subresource, Code: http.StatusForbidden,
				Answer: metav1.Status{
					Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
					Message: "it was not sent, because the program does not declare it: " +
						advice(ctx, checker.Declaration(r, missing)) + watchAdvice(ctx, r),
				},
			}
		})
	}
}

// advice returns what to do with declaration, the expression that declares a request. ctx belongs to the part
// that made the request.
func advice(ctx context.Context, declaration string) string {
	place := "to the part that needs it"
	if name := logAttr(ctx, "controller"); name != "" {
		place = "to the controller " + name
	} else if name := logAttr(ctx, "task"); name != "" {
		place = fmt.Sprintf("to the task %q", name)
	}
	return "add " + declaration + " " + place
}

// watchAdvice returns the end of the advice for r, a request that was not sent. A controller that reads a kind usually
// has to follow its changes too. It returns nothing for another request.
func watchAdvice(ctx context.Context, r *wire.Request) string {
	if r.Subresource != "" || r.Verb != wire.VerbGet && r.Verb != wire.VerbList || logAttr(ctx, "controller") == "" {
		return ""
	}
	return "; if a change of the object must lead to a reconcile, watch it by controller.WatchesReferenced or controller.Watches instead"
}

// logAttr returns the log attribute of a name that the part has whose context ctx is. It returns nothing if the part
// has no such attribute.
func logAttr(ctx context.Context, key string) string {
	if s, ok := logctx.From(ctx); ok {
		for _, a := range s.LogAttrs() {
			if a.Key == key {
				return a.Value.String()
			}
		}
	}
	return ""
}

// explainRefusal returns err, the outcome of r. If the server refused r because of an undeclared permission, the error
// contains the expression that declares the permission. If the server cannot select by a field, the error names the
// alternatives. checker may be nil.
func explainRefusal(ctx context.Context, checker *access.Checker, r *wire.Request, err error) error {
	e, ok := kube.AsError(err)
	if !ok {
		return err
	}
	if strings.HasPrefix(e.Answer.Message, "field label not supported: ") {
		return withRemedy(e,
			`select by kube.NewIndex and Index.Is, or give the field of a custom resource the tag crd:"selectable"`)
	}
	if checker == nil || !kube.IsForbidden(err) {
		return err
	}
	var remedy string
	switch missing := checker.MissingVerbs(r); {
	case isDeniedByAuthorizer(err) && len(missing) > 0:
		remedy = "the program does not declare it: " + advice(ctx, checker.Declaration(r, missing))
	case strings.Contains(e.Answer.Message, "cannot set an ownerRef on a resource you can't delete"):
		remedy = "OwnerReferencesPermissionEnforcement demands delete of whoever changes the owner references of an existing object: " +
			advice(ctx, checker.Declaration(r, []wire.Verb{wire.VerbDelete}))
	case strings.Contains(e.Answer.Message, "cannot set blockOwnerDeletion if"):
		remedy = "OwnerReferencesPermissionEnforcement demands update on the finalizers of the owner: declare the child by controller.Owns, or " +
			advice(ctx, `controller.Writes of the owner (wire.VerbUpdate).Subresource("finalizers")`)
	default:
		return err
	}
	return withRemedy(e, remedy)
}

// withRemedy returns a copy of e whose message ends with remedy.
func withRemedy(e *wire.Error, remedy string) error {
	explained := *e
	explained.Answer.Message += ": " + remedy
	return &explained
}
