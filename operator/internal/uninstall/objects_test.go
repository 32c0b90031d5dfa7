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
	"github.com/yare-go/yare/operator/internal/manifests"
)

// The namespaces that a program watches are found in its arguments, however they are written.
func TestWatchedNamespacesOfADeployment(t *testing.T) {
	t.Parallel()
	var d deployment
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, struct {
		Args []string `json:"args"`
	}{[]string{"run", "--watch-namespace=b", "-watch-namespace", "a", "--watch-namespace=b", "--bucket=watch-namespace=c", "-v"}})
	if got := d.watched(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("the namespaces are %q", got)
	}
}

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
				c := cluster{client: server.Client(), out: &out}
				options := Options{
					Installation: manifests.Installation{Program: "robots", Name: "robots", Namespace: "robots"},
					Watched:      []string{"default"}, Kinds: []kube.Resource{robots},
					Finalizers: []string{own}, DeleteObjects: true, AbandonCleanup: test.isAbandoned, Out: &out,
				}
				var d deployment
				d.Metadata.UID, d.Status.ReadyReplicas = "u", 1
				ctx, cancel := context.WithTimeout(t.Context(), readyLimit/2)
				defer cancel()
				if err := removeObjects(ctx, c, d, options); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the error is %v", err)
				}
				o, exists, err := c.find(t.Context(), robots, "default", "a")
				if !exists {
					t.Fatalf("the object does not exist: %v\n%s", err, &out)
				}
				if o.Metadata.DeletionTimestamp == nil || fmt.Sprint(o.Metadata.Finalizers) != fmt.Sprint(test.want) {
					t.Errorf("the object is being deleted since %v, with the finalizers %q, want %q\n%s",
						o.Metadata.DeletionTimestamp, o.Metadata.Finalizers, test.want, &out)
				}
			})
		})
	}
}
