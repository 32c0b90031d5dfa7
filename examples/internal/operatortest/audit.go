package operatortest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// OnRequest skips t unless the environment variable YARE_ALL_PERMISSIONS is set. The proof of the
// permissions takes a minute, and one example is enough for each change of yare.
func OnRequest(t *testing.T) {
	t.Helper()
	if os.Getenv("YARE_ALL_PERMISSIONS") == "" {
		t.Skip("set YARE_ALL_PERMISSIONS to prove the permissions of this example too")
	}
}

// ProvePermissions proves that the program in the current folder, with these flags, needs each permission that it prints,
// also to get objects: see [yaretest.PermissionProof].
func ProvePermissions(t *testing.T, use, begin func(*testing.T, *yaretest.PermissionRun), args ...string) {
	t.Helper()
	yaretest.PermissionProof{Program: yaretest.Build(t, "."), Args: args, Use: use, Begin: begin, EachGet: true}.Run(t)
}

// usePermissions lets objects be created, changed, healed and deleted, while the operator is restarted and its
// connection breaks.
func usePermissions(t *testing.T, o Operator, run *yaretest.PermissionRun) {
	w := newWorld(t, o, run.Cluster, run.Program, run.Namespace, run.Proxy)
	w.requireNoRefusal(t)
	w.apply(t, "app", first)
	w.start(t)
	w.waitUntilReady(t, "app", first)
	kindsOfWrites := kindsOf(w.proxy.Writes())
	w.apply(t, "app", second)
	w.waitUntilReady(t, "app", second)
	for _, child := range parse(t, o.Children("app", second)) {
		if err := w.apiOf(t, child).Delete(t.Context(), child.GetName()); err != nil {
			t.Fatal(err)
		}
		w.waitUntilReady(t, "app", second)
	}
	// The fate of each of the first writes for an object stays unknown, until requests are no longer
	// repeated. Therefore the operator gets the objects that it wrote. A write for another object may come between.
	for n := 0; n < kindsOfWrites || n < 5*kindsOfWrites && !hasGot(run.Granted, w.proxy.Requests()); n++ {
		name := fmt.Sprintf("fault-%d", n)
		before, _ := w.failures(t)
		w.proxy.CutAfterWrite(n%kindsOfWrites + 1)
		w.apply(t, name, first)
		w.proxy.WaitForCut(t)
		yaretest.Eventually(t, func() error {
			if now, _ := w.failures(t); now == before {
				return errors.New("no reconcile has failed")
			}
			return nil
		})
		w.proxy.Mend()
		w.waitUntilReady(t, name, first)
		yaretest.Eventually(t, func() error {
			if _, failing := w.failures(t); len(failing) > 0 {
				return fmt.Errorf("the last reconciles of %q have failed", failing)
			}
			return nil
		})
	}
	w.running.Kill()
	w.delete(t, "fault-0")
	w.start(t)
	w.waitUntilGone(t, "fault-0")
	w.waitUntilReady(t, "fault-1", first)
	w.delete(t, "app")
	w.waitUntilGone(t, "app")
	w.stop(t)
}

// kindsOf returns the number of writes that differ in more than their outcome.
func kindsOf(writes []yaretest.Request) int {
	kinds := make(map[string]bool)
	for _, w := range writes {
		kinds[fmt.Sprint(w.Verb, w.Resource, w.Subresource)] = true
	}
	return len(kinds)
}

// hasGot reports whether the server has answered a get of each kind that the operator may get and write. A write can
// leave only these objects in doubt.
func hasGot(granted []rbacv1.PolicyRule, requests []yaretest.Request) bool {
	all := permissionsOf(granted)
	for p := range all {
		isWritten := false
		for other := range all {
			isWritten = isWritten || strings.TrimSuffix(other.resource, "/status") == p.resource && wire.Verb(other.verb).IsWrite()
		}
		if p.verb == "get" && isWritten && !slices.ContainsFunc(requests, func(r yaretest.Request) bool {
			return r.Verb == wire.VerbGet && r.Resource == p.resource && r.Code != 0
		}) {
			return false
		}
	}
	return true
}

// beginPermissions creates an object, and fails t unless the operator reports a refusal and a child is missing.
func beginPermissions(t *testing.T, o Operator, run *yaretest.PermissionRun) {
	w := newWorld(t, o, run.Cluster, run.Program, run.Namespace, run.Proxy)
	w.apply(t, "app", first)
	w.start(t)
	w.running.WaitForLog(t, "forbidden")
	for _, child := range parse(t, w.Children("app", first)) {
		if missing(t.Context(), w.apiOf(t, child), child.GetName()) == nil {
			return
		}
	}
	t.Error("all children were made")
}
