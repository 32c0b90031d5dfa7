package follow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// A real server does not refuse a watch from a version that it has not reached: it is silent,
// and does not show what happens at or below that version. The scripted servers of other tests
// do the same.
func TestWatchFromTheFuture(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	apply(t, client, newThing(namespace, "a", 1))
	opened := make(chan struct{})
	watching := client.With(func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			defer close(opened)
			return next.Do(ctx, r)
		})
	})
	go func() {
		<-opened
		apply(t, client, newThing(namespace, "a", 2), newThing(namespace, "b", 1))
	}()
	for e, err := range kube.Namespaced[thing](watching, namespace).Watch(ctx, "99999999") {
		if ctx.Err() == nil {
			t.Errorf("the watch shows %s %v, %v", e.Type, e.Object, err)
		}
	}
	if ctx.Err() == nil {
		t.Error("the server ended the watch")
	}
}

// A real etcd that is set back to an earlier copy of its data: what happened since is lost, and
// the stream gets to the state that the server has.
func TestRestoredEtcd(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t)
	client := withThings(t, cluster)
	namespace := cluster.Namespace(t)
	apply(t, client, newThing(namespace, "a", 1), newThing(namespace, "b", 1))
	f := followThings(t, client.InNamespaces(namespace))
	f.expect(t, "[ +a1 +b1 ] =")

	// The backup.
	data := filepath.Join(filepath.Dir(cluster.Kubeconfig()), "etcd")
	backup := filepath.Join(t.TempDir(), "etcd")
	cluster.Stop(t, yaretest.APIServer)
	cluster.Stop(t, yaretest.Etcd)
	if err := os.CopyFS(backup, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	cluster.StartComponent(t, yaretest.Etcd)
	cluster.StartComponent(t, yaretest.APIServer)

	apply(t, client, newThing(namespace, "a", 2))
	want := "[ +a1 +b1 ] = ~a2"
	f.expect(t, want) // the watch is open again

	// What will be lost. The versions are many, so that the restored server does not pass them
	// before the stream is back.
	for i := range 300 {
		apply(t, client, newThing(namespace, "a", i+3))
		want += fmt.Sprintf(" ~a%d", i+3)
	}
	remove(t, client, namespace, "b")
	apply(t, client, newThing(namespace, "c", 1))
	want += " -b1 +c1"
	f.expect(t, want)

	cluster.Stop(t, yaretest.APIServer)
	cluster.Stop(t, yaretest.Etcd)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	cluster.StartComponent(t, yaretest.Etcd)
	cluster.StartComponent(t, yaretest.APIServer)
	f.expect(t, want+" [ ~a1 +b1 -c? ]")
	// It follows the restored server.
	apply(t, client, newThing(namespace, "a", 1000))
	f.expect(t, want+" [ ~a1 +b1 -c? ] ~a1000")
	if reports := f.reports(); !strings.Contains(reports, "restored backup") {
		t.Errorf("reports:\n%s", reports)
	}
}
