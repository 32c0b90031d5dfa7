package operator

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

// refuseUndeclared returns a wrapper of handlers. The wrapper fails each request that no part declares,
// before the request is sent. The error has the status of a server that denies the request, and contains the
// expression to declare the request.
func refuseUndeclared(checker *access.Checker) func(wire.Handler) wire.Handler {
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
					Message: "it was not sent, because the program does not declare it: " + advice(ctx, checker.Declaration(r, missing)),
				},
			}
		})
	}
}

// advice returns what to do with declaration, the expression that declares a request. ctx belongs to the part
// that made the request.
func advice(ctx context.Context, declaration string) string {
	place := "to the part that needs it"
	if s, ok := logctx.From(ctx); ok {
		for _, a := range s.LogAttrs() {
			switch a.Key {
			case "controller":
				place = "to the controller " + a.Value.String()
			case "task":
				place = fmt.Sprintf("to the task %q", a.Value.String())
			}
		}
	}
	return "add " + declaration + " " + place
}

// explainDenial returns err, the outcome of r. If the server refused r because of an undeclared permission,
// the error contains the expression that declares the permission. checker may be nil.
func explainDenial(ctx context.Context, checker *access.Checker, r *wire.Request, err error) error {
	e, ok := kube.AsError(err)
	if !ok || checker == nil || !kube.IsForbidden(err) {
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
	explained := *e
	explained.Answer.Message += ": " + remedy
	return &explained
}
