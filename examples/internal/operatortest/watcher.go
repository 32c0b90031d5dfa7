package operatortest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/yaretest"
)

// Watcher is a program in the current folder that prints what happens to the objects of a kind.
type Watcher struct {
	// Group and Plural name its resource.
	Group, Plural string
	// Manifest returns an object in one of two states, as YAML.
	Manifest func(name string, changed bool) string
	// Sample is the name of the object in sample.yaml. SampleLine is what the program prints when
	// the object is added.
	Sample, SampleLine string
	// Started holds the lines at the start of the program.
	Started []string
	// Added, Modified and Deleted return the lines for an object of Manifest.
	Added, Modified, Deleted func(name string) []string
	// IsError reports whether a line may be due to an error.
	IsError func(line string) bool
}

// Test runs all tests of the program.
func (w Watcher) Test(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"definition":      w.testDefinition,
		"sample":          w.testSample,
		"changes":         w.testChanges,
		"namespaces":      w.testNamespaces,
		"few rights":      w.testFewRights,
		"server restarts": w.testServerRestarts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// cluster returns the shared control plane, with the definition in place.
func (w Watcher) cluster(t *testing.T, program string) *yaretest.Cluster {
	t.Helper()
	cluster := yaretest.Shared(t)
	w.define(t, cluster, program)
	return cluster
}

// define applies the definition as the documentation says.
func (w Watcher) define(t *testing.T, cluster *yaretest.Cluster, program string) {
	t.Helper()
	definition := printedDefinition(t, program)
	// Tests that run side by side do this at the same moment. If two tests both found no definition,
	// the slower test fails, because the definition exists.
	yaretest.Eventually(t, func() error {
		_, stderr, err := cluster.TryKubectl(t, definition, "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("kubectl apply -f -: %w: %s", err, stderr)
		}
		return nil
	})
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+w.Plural+"."+w.Group)
}

func (w Watcher) apply(t *testing.T, c *yaretest.Cluster, namespace, name string, changed bool) {
	t.Helper()
	c.Kubectl(t, w.Manifest(name, changed), "apply", "--namespace", namespace, "-f", "-")
}

func (w Watcher) delete(t *testing.T, c *yaretest.Cluster, namespace, name string) {
	t.Helper()
	c.Kubectl(t, "", "delete", "--namespace", namespace, w.Plural+"."+w.Group, name)
}

// waitForLast waits until the program has printed the last of lines.
func waitForLast(t *testing.T, p *yaretest.Process, lines []string) {
	t.Helper()
	p.WaitForLine(t, lines[len(lines)-1])
}

// compareLines fails t unless the program has printed the wanted lines.
func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// testDefinition checks that the program prints crd.yaml, and that a server accepts this file.
func (w Watcher) testDefinition(t *testing.T) {
	program := yaretest.Build(t, ".")
	checkDefinition(t, program)
	w.cluster(t, program)
	yaretest.Shared(t).Kubectl(t, "", "apply", "-f", "crd.yaml")
}

// testSample checks that the sample works unchanged.
func (w Watcher) testSample(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := w.cluster(t, program)
	namespace := cluster.Namespace(t)
	p := cluster.Run(t, program, "--watch-namespace", namespace)
	cluster.Kubectl(t, "", "apply", "--namespace", namespace, "-f", "sample.yaml")
	p.WaitForLine(t, w.SampleLine)
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
	compareLines(t, append(slices.Clone(w.Started), w.SampleLine), p.Lines())
}

// testChanges checks that each change is printed once: objects exist before the start, or are added, modified and deleted later.
func (w Watcher) testChanges(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := w.cluster(t, program)
	namespace := cluster.Namespace(t)
	w.apply(t, cluster, namespace, "before", false)

	p := cluster.Run(t, program, "run", "--watch-namespace", namespace)
	waitForLast(t, p, w.Added("before"))
	w.apply(t, cluster, namespace, "fresh", false)
	waitForLast(t, p, w.Added("fresh"))
	w.apply(t, cluster, namespace, "before", true)
	w.delete(t, cluster, namespace, "before")
	waitForLast(t, p, w.Deleted("before"))

	// Another start begins with the objects that exist then.
	second := cluster.Run(t, program, "--watch-namespace", namespace)
	waitForLast(t, second, w.Added("fresh"))
	for _, each := range []*yaretest.Process{p, second} {
		if status := each.Interrupt(t); status != 0 {
			t.Errorf("after SIGINT the status is %d", status)
		}
	}
	compareLines(t, slices.Concat(w.Started, w.Added("before"), w.Added("fresh"),
		w.Modified("before"), w.Deleted("before")), p.Lines())
	compareLines(t, slices.Concat(w.Started, w.Added("fresh")), second.Lines())
	// The first line of a log has the versions.
	if log := p.Log(); len(log) != 1 || !strings.Contains(log[0], `"msg":"starting"`) {
		t.Errorf("nothing failed, but it logged: %s", strings.Join(log, "\n"))
	}
}

// testNamespaces checks that other namespaces are not shown with --watch-namespace, which may be repeated, and that all
// namespaces are shown without the flag.
func (w Watcher) testNamespaces(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := w.cluster(t, program)
	one, two, other := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	all := cluster.Run(t, program)
	narrow := cluster.Run(t, program, "--watch-namespace", one, "--watch-namespace="+two)
	// The other namespace's object comes first, so that it would be seen before the objects that are waited for.
	for _, object := range []struct{ namespace, name string }{
		{other, "hidden-" + other},
		{one, "first-" + one},
		{two, "second-" + two},
	} {
		w.apply(t, cluster, object.namespace, object.name, false)
		waitForLast(t, all, w.Added(object.name))
	}
	waitForLast(t, narrow, w.Added("first-"+one))
	waitForLast(t, narrow, w.Added("second-"+two))
	narrow.Interrupt(t)
	got := slices.Sorted(slices.Values(narrow.Lines()))
	compareLines(t, slices.Sorted(slices.Values(slices.Concat(w.Started, w.Added("first-"+one), w.Added("second-"+two)))),
		got)
}

// testFewRights checks that the program runs in its own namespace with the permissions that it prints, and no others.
func (w Watcher) testFewRights(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := w.cluster(t, program)
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	account.AllowPrinted(t, program, "--watch-namespace", namespace)
	p := yaretest.Run(t, account.Kubeconfig(), program, "--watch-namespace", namespace)
	w.apply(t, cluster, namespace, "fresh", false)
	waitForLast(t, p, w.Added("fresh"))
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
	compareLines(t, w.Added("fresh"), w.withoutErrors(p.Lines()))
}

// TestPermissions checks that the program asks for the printed permissions, and for nothing else: see
// [ProvePermissions].
func (w Watcher) TestPermissions(t *testing.T) {
	use := func(t *testing.T, run *yaretest.PermissionRun) {
		p := yaretest.Run(t, run.Proxy.Kubeconfig(), run.Program, "--watch-namespace", run.Namespace)
		w.apply(t, run.Cluster, run.Namespace, "fresh", false)
		waitForLast(t, p, w.Added("fresh"))
		w.delete(t, run.Cluster, run.Namespace, "fresh")
		waitForLast(t, p, w.Deleted("fresh"))
		if status := p.Interrupt(t); status != 0 {
			t.Errorf("after SIGINT the status is %d", status)
		}
	}
	ProvePermissions(t, use, nil)
}

// withoutErrors returns lines without the lines of the start, and without lines that may be due to errors.
func (w Watcher) withoutErrors(lines []string) []string {
	var rest []string
	for _, line := range lines[min(len(lines), len(w.Started)):] {
		if !w.IsError(line) {
			rest = append(rest, line)
		}
	}
	return rest
}

// testServerRestarts checks that the program reports an error when the API server is stopped or crashes. Afterwards the program
// goes on where it was, and repeats nothing.
func (w Watcher) testServerRestarts(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := yaretest.New(t)
	w.define(t, cluster, program)
	w.apply(t, cluster, "default", "before", false)
	p := cluster.Run(t, program)
	waitForLast(t, p, w.Added("before"))
	want := w.Added("before")
	for name, end := range map[string]func(testing.TB, string){"stopped": cluster.Stop, "killed": cluster.Kill} {
		before := w.errorCount(p)
		end(t, yaretest.APIServer)
		yaretest.Eventually(t, func() error {
			if w.errorCount(p) == before {
				return errNotReported
			}
			return nil
		})
		cluster.StartComponent(t, yaretest.APIServer)
		w.apply(t, cluster, "default", name, false)
		waitForLast(t, p, w.Added(name))
		want = slices.Concat(want, w.Added(name))
	}
	w.delete(t, cluster, "default", "before")
	waitForLast(t, p, w.Deleted("before"))
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
	compareLines(t, slices.Concat(want, w.Deleted("before")), w.withoutErrors(p.Lines()))
}

// errorCount returns the number of lines that may be due to errors.
func (w Watcher) errorCount(p *yaretest.Process) (n int) {
	for _, line := range p.Lines() {
		if w.IsError(line) {
			n++
		}
	}
	return n
}

var errNotReported = errors.New("the server is away, and no error was reported")
