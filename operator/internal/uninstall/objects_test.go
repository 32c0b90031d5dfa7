package uninstall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/internal/testkit/fakeserver"
	"github.com/yare-go/yare/kube"
)

// The command waits for the cleanup of an object, for as long as it may run. It removes a finalizer
// only if the user abandons the cleanup, and never a finalizer of others.
func TestFinalizersAreRemovedOnRequestOnly(t *testing.T) {
	t.Parallel()
	const own, foreign = "robots.example.com/cleanup", "other.example.com/keep"
	for _, test := range []struct {
		isAbandoned bool
		want        []string
	}{
		{false, []string{own, foreign}},
		{true, []string{foreign}},
	} {
		t.Run(fmt.Sprint("abandoned: ", test.isAbandoned), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := fakeserver.New()
				robots := kube.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Robot"}, Plural: "robots"}
				server.Store(robots, "default", "a", map[string]any{"metadata": map[string]any{"finalizers": []any{own, foreign}}})
				var out bytes.Buffer
				u := &uninstaller{client: server.Client(), Options: Options{
					Program: "robots", Name: "robots", Namespace: "robots", Watched: []string{"default"}, Kinds: []kube.Resource{robots},
					Finalizers: []string{own}, DeleteObjects: true, AbandonCleanup: test.isAbandoned, Out: &out,
				}}
				d := new(deployment)
				d.Status.ReadyReplicas = 1
				ctx, cancel := context.WithTimeout(t.Context(), readyLimit/2)
				defer cancel()
				if err := u.removeObjects(ctx, d); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the error is %v", err)
				}
				o, err := u.get(t.Context(), robots, "default", "a")
				if err != nil || o == nil {
					t.Fatalf("the object is %v: %v\n%s", o, err, &out)
				}
				if o.DeletionTimestamp == nil || fmt.Sprint(o.Finalizers) != fmt.Sprint(test.want) {
					t.Errorf("the object is being deleted since %v, with the finalizers %q, want %q\n%s",
						o.DeletionTimestamp, o.Finalizers, test.want, &out)
				}
			})
		})
	}
}
