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

// SkipUnlessAllPermissions skips t unless the environment variable YARE_ALL_PERMISSIONS is set. The proof of the
// permissions takes a minute, and one example is enough for each change of yare.
func SkipUnlessAllPermissions(t *testing.T) {
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
	r := newOperatorRun(t, o, run.Cluster, run.Program, run.Namespace, run.Proxy)
	r.requireNoRefusal(t)
	r.apply(t, "app", firstState)
	r.start(t)
	r.waitUntilReady(t, "app", firstState)
	writeKinds := writeKindCount(r.proxy.Writes())
	r.apply(t, "app", secondState)
	r.waitUntilReady(t, "app", secondState)
	for _, child := range parse(t, o.Children("app", secondState)) {
		if err := r.apiOf(t, child).Delete(t.Context(), child.GetName()); err != nil {
			t.Fatal(err)
		}
		r.waitUntilReady(t, "app", secondState)
	}
	// In each round the connection breaks after a write, and the operator does not know whether the server has carried the write
	// out. Therefore the operator gets the object that it wrote. A write for another object may come between, so there can be
	// more rounds than kinds of writes.
	for n := 0; n < writeKinds || n < 5*writeKinds && !hasGot(run.Granted, r.proxy.Requests()); n++ {
		name := fmt.Sprintf("fault-%d", n)
		before, _ := r.failures(t)
		r.proxy.CutAfterWrite(n%writeKinds + 1)
		r.apply(t, name, firstState)
		r.proxy.WaitForCut(t)
		yaretest.Eventually(t, func() error {
			if now, _ := r.failures(t); now == before {
				return errors.New("no reconcile has failed")
			}
			return nil
		})
		r.proxy.Mend()
		r.waitUntilReady(t, name, firstState)
		yaretest.Eventually(t, func() error {
			if _, failing := r.failures(t); len(failing) > 0 {
				return fmt.Errorf("the last reconciles of %q have failed", failing)
			}
			return nil
		})
	}
	r.process.Kill()
	r.delete(t, "fault-0")
	r.start(t)
	r.waitUntilGone(t, "fault-0")
	r.waitUntilReady(t, "fault-1", firstState)
	r.delete(t, "app")
	r.waitUntilGone(t, "app")
	r.stop(t)
}

// writeKindCount returns the number of kinds of writes. Two writes are of one kind if they have the same verb, resource and
// subresource.
func writeKindCount(writes []yaretest.Request) int {
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
			isWritten = isWritten ||
				strings.TrimSuffix(other.resource, "/status") == p.resource && wire.Verb(other.verb).IsWrite()
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
	r := newOperatorRun(t, o, run.Cluster, run.Program, run.Namespace, run.Proxy)
	r.apply(t, "app", firstState)
	r.start(t)
	r.process.WaitForLog(t, "forbidden")
	for _, child := range parse(t, r.Children("app", firstState)) {
		if checkMissing(t.Context(), r.apiOf(t, child), child.GetName()) == nil {
			return
		}
	}
	t.Error("all children were made")
}
