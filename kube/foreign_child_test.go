package kube_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Regression: an apply of a plain client made an object of somebody else a child, which the garbage collector deletes
// together with the owner, without being asked to.
func TestClientTakesNothingOver(t *testing.T) {
	t.Parallel()
	server := fakeserver.New()
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"k": name}}
	}
	must := func(o *corev1.ConfigMap, err error) *corev1.ConfigMap {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	ctx := t.Context()
	theirs, ours := server.Client().WithFieldManager("somebody"), server.Client().WithFieldManager("us")
	must(kube.Apply(ctx, theirs, named("theirs")))
	owner, other := must(kube.Apply(ctx, theirs, named("owner"))), must(kube.Apply(ctx, theirs, named("other")))
	must(kube.Apply(ctx, theirs, kube.OwnedBy(other, named("controlled"))))
	must(kube.Apply(ctx, ours, named("written")))

	for _, refused := range []string{"theirs", "controlled"} {
		if _, err := kube.Apply(ctx, ours, kube.OwnedBy(owner, named(refused))); !errors.Is(err, kube.ErrForeignChild) {
			t.Errorf("the apply to %q returned %v", refused, err)
		}
		if live := must(kube.Get[corev1.ConfigMap](ctx, theirs, "default", refused)); len(live.OwnerReferences) > 0 && live.OwnerReferences[0].UID == owner.UID {
			t.Errorf("%q became a child", refused)
		}
	}
	created := must(kube.Apply(ctx, ours, kube.OwnedBy(owner, named("ours"))))
	if again := must(kube.Apply(ctx, ours, kube.OwnedBy(owner, named("ours")))); again.UID != created.UID {
		t.Error("the second apply of a child made another object")
	}
	for _, child := range []*corev1.ConfigMap{
		must(kube.Apply(ctx, ours, kube.OwnedBy(owner, named("written")))),
		must(kube.Apply(ctx, ours, kube.OwnedBy(owner, named("theirs")), kube.Adopt())),
		must(kube.Namespaced[corev1.ConfigMap](ours, "default").Apply(ctx, kube.OwnedBy(owner, named("by handle")))),
	} {
		if len(child.OwnerReferences) != 1 || child.OwnerReferences[0].UID != owner.UID {
			t.Errorf("the owners of %q are %v", child.Name, child.OwnerReferences)
		}
	}
}

// An object that somebody makes between the decision and the apply is not taken over.
func TestClientTakesNothingOverInARace(t *testing.T) {
	t.Parallel()
	server := fakeserver.New()
	ctx, theirs := t.Context(), server.Client().WithFieldManager("somebody")
	theirMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theirs"}}
	owner, err := kube.Apply(ctx, theirs, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}})
	if err != nil {
		t.Fatal(err)
	}
	ours := server.Client().WithFieldManager("us").With(func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			response, err := next.Do(ctx, r)
			if r.Verb == wire.VerbGet {
				if _, err := kube.Create(ctx, theirs, theirMap); err != nil {
					t.Error(err)
				}
			}
			return response, err
		})
	})
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theirs"}}
	if _, err := kube.Apply(ctx, ours, kube.OwnedBy(owner, child)); !kube.IsConflict(err) {
		t.Errorf("the apply returned %v, want a conflict", err)
	}
	if live, err := kube.Get[corev1.ConfigMap](ctx, theirs, "default", "theirs"); err != nil || len(live.OwnerReferences) > 0 {
		t.Errorf("the owners of the object are %v, %v", live.OwnerReferences, err)
	}
}
