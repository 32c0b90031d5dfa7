package operator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

func reconcileGadget(context.Context, *gadget, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

func idleTask(ctx context.Context, _ *controller.Runtime) error { <-ctx.Done(); return nil }

// answering returns a client whose requests are counted, and answered with err.
func answering(requests *int, err error) *kube.Client {
	return kube.NewClientFromHandler(wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) {
		*requests++
		return nil, err
	}))
}

// A request that no part declares is not sent, and its error contains what declares the request.
func TestUndeclaredRequestIsNotSent(t *testing.T) {
	t.Parallel()
	down := errors.New("the server was asked")
	for name, c := range map[string]struct {
		permissions []controller.Permission
		isChecked   bool
		requests    int
		want        []string
	}{
		"undeclared":               {nil, true, 0, []string{"delete configmaps \"a/b\"", "it was not sent", `add controller.Writes[corev1.ConfigMap](wire.VerbDelete) to the task "clean"`}},
		"declared":                 {[]controller.Permission{controller.Writes[corev1.ConfigMap](wire.VerbDelete)}, true, 1, []string{down.Error()}},
		"without check":            {nil, false, 1, []string{down.Error()}},
		"declared for a namespace": {[]controller.Permission{controller.Writes[corev1.ConfigMap](wire.VerbDelete).InNamespaces("c")}, true, 0, []string{"it was not sent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			requests := 0
			clean := Task("clean", func(ctx context.Context, rt *controller.Runtime) error {
				err = rt.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
				return nil
			}, c.permissions...)
			ctx := t.Context()
			if c.isChecked {
				ctx = access.WithCheck(ctx, "")
			}
			if err := Run(ctx, answering(&requests, down), clean); err != nil {
				t.Fatal(err)
			}
			if requests != c.requests {
				t.Errorf("%d requests were sent, want %d", requests, c.requests)
			}
			if err == nil || kube.IsForbidden(err) != (c.requests == 0) {
				t.Fatalf("the error is %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
		})
	}
}

// What a server refuses has in its error what to declare, unless it is declared.
func TestRefusalsNameWhatToDeclare(t *testing.T) {
	t.Parallel()
	denied := refused(`configmaps "b" is forbidden: User "x" cannot delete resource "configmaps" in API group "" in the namespace "a"`)
	for name, c := range map[string]struct {
		permissions []controller.Permission
		err         error
		want        string // empty: the error stays as it is
	}{
		"undeclared": {nil, denied, "the program does not declare it: add controller.Writes[corev1.ConfigMap](wire.VerbDelete) to the part that needs it"},
		"declared":   {[]controller.Permission{controller.Writes[corev1.ConfigMap](wire.VerbDelete)}, denied, ""},
		"a quota":    {nil, refused(`configmaps "b" is forbidden: exceeded quota: q`), ""},
		"another owner reference": {nil, refused(`configmaps "b" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`),
			"OwnerReferencesPermissionEnforcement demands delete of whoever changes the owner references of an existing object: add controller.Writes[corev1.ConfigMap](wire.VerbDelete)"},
		"an owner whose deletion is blocked": {nil, refused(`configmaps "b" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`),
			"declare the child by controller.Owns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs, err := needsOf([]Part{Task("clean", idleTask, c.permissions...)})
			if err != nil {
				t.Fatal(err)
			}
			reporter := problems.NewReporter(slog.New(slog.DiscardHandler), "", "", needs, access.NewChecker(needs, nil, ""))
			requests := 0
			client := answering(&requests, c.err).With(reporter.Handler)
			err = client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
			if c.want == "" && err.Error() != c.err.Error() || !strings.Contains(err.Error(), c.want) || !kube.IsForbidden(err) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

// Regression: an author of controller-runtime who reads a Secret got the advice to declare the read, and nothing said that the
// Secret has to be watched too.
func TestUndeclaredReadOfAControllerNamesWatches(t *testing.T) {
	t.Parallel()
	const watch = "watch it by controller.WatchesReferenced"
	inController := logctx.With(t.Context(), slog.Default(), slog.String("controller", "gadget"))
	for name, c := range map[string]struct {
		ctx  context.Context
		do   func(ctx context.Context, c *kube.Client) error
		want bool
	}{
		"get": {inController, getSecret, true},
		"a write": {inController, func(ctx context.Context, c *kube.Client) error {
			return c.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
		}, false},
		"no watch": {logctx.With(t.Context(), slog.Default(), slog.String("task", "clean")), getSecret, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs, err := needsOf([]Part{Task("clean", idleTask)})
			if err != nil {
				t.Fatal(err)
			}
			requests := 0
			err = c.do(c.ctx, answering(&requests, nil).With(problems.RefuseUndeclared(access.NewChecker(needs, nil, ""))))
			if !kube.IsForbidden(err) || strings.Contains(err.Error(), watch) != c.want {
				t.Errorf("the error is %v, names watches: want %t", err, c.want)
			}
		})
	}
}

func getSecret(ctx context.Context, c *kube.Client) error {
	_, err := kube.Get[corev1.Secret](ctx, c, "a", "b")
	return err
}

// Regression: a list by a field of a custom resource, the habit of MatchingFields, failed without a word about indexes.
func TestUnsupportedFieldNamesIndexes(t *testing.T) {
	t.Parallel()
	needs, err := needsOf([]Part{Task("clean", idleTask)})
	if err != nil {
		t.Fatal(err)
	}
	unsupported := &wire.Error{Code: 400, Answer: metav1.Status{Code: 400, Reason: metav1.StatusReasonBadRequest, Message: "field label not supported: spec.zone"}}
	for _, checker := range []*access.Checker{nil, access.NewChecker(needs, nil, "")} {
		reporter := problems.NewReporter(slog.New(slog.DiscardHandler), "", "", needs, checker)
		requests := 0
		_, err := kube.List[gadget](t.Context(), answering(&requests, unsupported).With(reporter.Handler), "a", kube.Field("spec.zone", "z"))
		if !kube.HasReason(err, metav1.StatusReasonBadRequest) || !strings.Contains(err.Error(), "spec.zone: select by kube.NewIndex") {
			t.Errorf("the error is %v", err)
		}
	}
}
