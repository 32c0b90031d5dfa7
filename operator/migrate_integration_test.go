package operator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/yaretest"
)

// moverSpec is the spec of a kind in the version V.
type moverSpec[V interface{ Definition() kube.Definition }] struct {
	Size int `json:"size,omitempty"`
}

func (moverSpec[V]) Definition() kube.Definition {
	var v V
	d := v.Definition()
	d.Group, d.Kind = "moves.example.com", "Mover"
	return d
}

// The versions of Movers in the releases of a program: served and stored, served, and not served.
type (
	v1Stored    struct{}
	v1Served    struct{}
	v1NotServed struct{}
	v2Stored    struct{}
	v2Served    struct{}
)

func (v1Stored) Definition() kube.Definition { return kube.Definition{Version: "v1", Storage: true} }
func (v1Served) Definition() kube.Definition { return kube.Definition{Version: "v1"} }
func (v1NotServed) Definition() kube.Definition {
	return kube.Definition{Version: "v1", NotServed: true}
}
func (v2Stored) Definition() kube.Definition { return kube.Definition{Version: "v2", Storage: true} }
func (v2Served) Definition() kube.Definition { return kube.Definition{Version: "v2"} }

// definesMover returns a part whose program defines Movers in the version V.
func definesMover[V interface{ Definition() kube.Definition }]() operator.Part {
	return operator.Watcher[kube.CustomResource[moverSpec[V], kube.None]](func(context.Context, *kube.Client) error { return nil })
}

// convertsMover returns a part that converts Movers between the versions V and W, which have equal fields.
func convertsMover[V, W interface{ Definition() kube.Definition }]() operator.Part {
	type (
		first  = kube.CustomResource[moverSpec[V], kube.None]
		second = kube.CustomResource[moverSpec[W], kube.None]
	)
	return conversion.Between(func(a *first, b *second) { b.Spec.Size = a.Spec.Size }, func(b *second, a *first) { a.Spec.Size = b.Spec.Size })
}

// An administrator leads a kind from v1 to v2 by the commands of the page versions.md alone.
func TestMigrateByTheCommandLine(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	namespace := cluster.Namespace(t)
	const definition = "movers.moves.example.com"
	t.Cleanup(func() {
		if _, stderr, err := cluster.TryKubectl(t, "", "delete", "crd", definition, "--wait=false"); err != nil {
			t.Logf("left behind: %v: %s", err, stderr)
		}
	})
	releases := map[string][]operator.Part{
		"A": {definesMover[v1Stored]()}, "B": {convertsMover[v1Stored, v2Served]()}, "C": {convertsMover[v1Served, v2Stored]()},
		"D": {convertsMover[v1NotServed, v2Stored]()}, "E": {definesMover[v2Stored]()},
	}
	call := func(release string, args ...string) (status int, stdout, stderr string) {
		t.Helper()
		program := operator.Program{Parts: func() ([]operator.Part, error) { return releases[release], nil }}
		if args[0] != "crd" {
			args = append(args, "--kubeconfig", cluster.Kubeconfig())
		}
		return operator.CallProgram(t.Context(), "movers", program, args...)
	}
	// succeed runs a command that must succeed, and returns its output.
	succeed := func(release string, args ...string) string {
		t.Helper()
		status, stdout, stderr := call(release, args...)
		if status != 0 {
			t.Fatalf("%v of release %s: status %d, %s\n%s", args, release, status, stderr, stdout)
		}
		return stdout
	}
	install := func(release string) {
		t.Helper()
		succeed(release, "manifests", "--image=i:1", "--check", "--webhooks=")
		cluster.Kubectl(t, succeed(release, "crd"), "apply", "--server-side", "-f", "-")
		cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+definition)
	}
	refuse := func(release, want string) {
		t.Helper()
		if status, stdout, stderr := call(release, "manifests", "--image=i:1", "--check", "--webhooks="); status != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("release %s: status %d, %s\n%s", release, status, stderr, stdout)
		}
	}
	apply := func(version, name string, size int) {
		t.Helper()
		object := fmt.Sprintf("apiVersion: moves.example.com/%s\nkind: Mover\nmetadata: {name: %s, namespace: %s}\nspec: {size: %d}\n", version, name, namespace, size)
		yaretest.Eventually(t, func() error { // a new definition is served after a moment
			_, stderr, err := cluster.TryKubectl(t, object, "apply", "--server-side", "-f", "-")
			if err != nil {
				return fmt.Errorf("%w: %s", err, stderr)
			}
			return nil
		})
	}
	if status, _, stderr := call("B", "migrate"); status != 1 || !strings.Contains(stderr, "the cluster has no definition "+definition) {
		t.Errorf("without a definition: status %d, %s", status, stderr)
	}
	if status, _, stderr := call("A", "migrate"); status != 1 || !strings.Contains(stderr, "import github.com/yare-go/yare/operator/conversion and add conversion.Between to the parts") {
		t.Errorf("without a converter: status %d, %s", status, stderr)
	}
	install("A")
	apply("v1", "a", 1)
	refuse("C", "objects would be stored in v2, which the cluster does not serve yet")
	install("B")
	apply("v2", "b", 2)
	refuse("A", "run movers migrate --remove-version v2")
	succeed("B", "migrate", "--remove-version", "v2")
	install("A")
	install("B")
	refuse("D", "objects are stored in v1, which would not be served any more")
	install("C")
	refuse("D", "run movers migrate first")
	refuse("A", "objects may be stored in version v2")
	if stdout := succeed("C", "migrate", "--dry-run"); !strings.Contains(stdout, "would write 2 objects") {
		t.Errorf("a dry run:\n%s", stdout)
	}
	if stdout := succeed("C", "migrate", "--rate", "20"); !strings.Contains(stdout, "2 of 2 objects were written") || !strings.Contains(stdout, "status.storedVersions is now [v2]") {
		t.Errorf("in C:\n%s", stdout)
	}
	refuse("E", "version v1 is served, and the program does not define it any more")
	install("D")
	refuse("E", "managedFields of 2 objects have entries in it")
	if stdout := succeed("D", "migrate"); !strings.Contains(stdout, "managedFields of 2 objects") {
		t.Errorf("in D:\n%s", stdout)
	}
	install("E")
	apply("v2", "a", 3)
}
