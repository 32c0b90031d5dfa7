package operator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// Two controllers of one kind with one finalizer started without a word. Whichever was done first removed the finalizer, and
// the object was gone before the cleanup of the other was done.
func TestControllersOfOneKindNeedDifferentFinalizers(t *testing.T) {
	t.Parallel()
	maps := func(name string) *controller.Controller[corev1.ConfigMap] {
		return controller.New(func(context.Context, *corev1.ConfigMap, *kube.Client) (controller.Action, error) {
			return controller.Done(), nil
		}, controller.Name(name), controller.FieldManager(name))
	}
	cleanup := func(context.Context, *corev1.ConfigMap, *kube.Client) (controller.Cleanup, error) {
		return controller.CleanupDone(), nil
	}
	secrets := controller.New(func(context.Context, *corev1.Secret, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}).
		Finalizer("example.com/a", func(context.Context, *corev1.Secret, *kube.Client) (controller.Cleanup, error) {
			return controller.CleanupDone(), nil
		})
	for name, test := range map[string]struct {
		parts     []Part
		isRefused bool
	}{
		"the same":            {[]Part{maps("a").Finalizer("example.com/a", cleanup), maps("b").Finalizer("example.com/a", cleanup)}, true},
		"different":           {[]Part{maps("a").Finalizer("example.com/a", cleanup), maps("b").Finalizer("example.com/b", cleanup)}, false},
		"different kinds":     {[]Part{maps("a").Finalizer("example.com/a", cleanup), secrets}, false},
		"retired by another":  {[]Part{maps("a").RetiredFinalizers("example.com/b"), maps("b").Finalizer("example.com/b", cleanup)}, true},
		"former of another":   {[]Part{maps("a").Finalizer("example.com/a", cleanup), maps("b").Finalizer("example.com/b", cleanup).FormerFinalizers("example.com/a")}, true},
		"retired by both":     {[]Part{maps("a").RetiredFinalizers("example.com/old"), maps("b").RetiredFinalizers("example.com/old")}, false},
		"of one of them only": {[]Part{maps("a").Finalizer("example.com/a", cleanup), maps("b")}, false},
	} {
		_, err := needsOf(test.parts)
		if isRefused := err != nil; isRefused != test.isRefused {
			t.Errorf("%s: %v", name, err)
		}
		if want := `two controllers of configmaps remove the finalizer "example.com/`; err != nil && (!strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0) {
			t.Errorf("%s: the error is %q", name, err)
		}
	}
}
