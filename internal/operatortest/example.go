// Package operatortest tests the examples that tell what they see of one kind: each as the
// program that its users run, against a real control plane.
package operatortest

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/yare-go/yare/yaretest"
)

// Example is a program in the current folder, and what it must print.
type Example struct {
	// Group and Plural name its resource.
	Group, Plural string
	// Manifest is an object in two states, as YAML.
	Manifest func(name string, changed bool) string
	// Sample is the name of the object in sample.yaml, and SampleLine what is printed when
	// that is added.
	Sample, SampleLine string
	// Started are the lines at the start of the program.
	Started []string
	// Added, Modified and Deleted are the lines for an object of Manifest.
	Added, Modified, Deleted func(name string) []string
	// IsError tells the lines that an error may lead to.
	IsError func(line string) bool
}

// Test runs all tests of the example.
func (e Example) Test(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"definition":      e.testDefinition,
		"sample":          e.testSample,
		"life":            e.testLife,
		"namespaces":      e.testNamespaces,
		"few rights":      e.testFewRights,
		"server restarts": e.testServerRestarts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// crd is what the program prints as its definition.
func crd(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program, "crd").Output()
	if err != nil {
		t.Fatalf("%s crd: %v", program, err)
	}
	return string(out)
}

// cluster is the shared one, with the definition in place.
func (e Example) cluster(t *testing.T, program string) *yaretest.Cluster {
	t.Helper()
	cluster := yaretest.Start(t)
	e.define(t, cluster, program)
	return cluster
}

// define does what the documentation tells users to do.
func (e Example) define(t *testing.T, cluster *yaretest.Cluster, program string) {
	t.Helper()
	definition := crd(t, program)
	// Tests that run side by side do this at the same moment, and of two that both found
	// nothing there, kubectl tells the slower one that it exists.
	yaretest.Eventually(t, func() error {
		_, stderr, err := cluster.TryKubectl(t, definition, "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("kubectl apply -f -: %w: %s", err, stderr)
		}
		return nil
	})
	cluster.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+e.Plural+"."+e.Group)
}

func (e Example) apply(t *testing.T, c *yaretest.Cluster, namespace, name string, changed bool) {
	t.Helper()
	c.Kubectl(t, e.Manifest(name, changed), "apply", "--namespace", namespace, "-f", "-")
}

func (e Example) delete(t *testing.T, c *yaretest.Cluster, namespace, name string) {
	t.Helper()
	c.Kubectl(t, "", "delete", "--namespace", namespace, e.Plural+"."+e.Group, name)
}

// waitForAll waits for the last of lines.
func waitForAll(t *testing.T, p *yaretest.Process, lines []string) {
	t.Helper()
	p.WaitForLine(t, lines[len(lines)-1])
}

func compare(t *testing.T, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// crd.yaml is what the program prints, and a server takes it.
func (e Example) testDefinition(t *testing.T) {
	program := yaretest.Build(t, ".")
	checkDefinition(t, program)
	e.cluster(t, program)
	yaretest.Start(t).Kubectl(t, "", "apply", "-f", "crd.yaml")
}

// The sample works unchanged.
func (e Example) testSample(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := e.cluster(t, program)
	namespace := cluster.Namespace(t)
	p := cluster.Run(t, program, "--namespace", namespace)
	cluster.Kubectl(t, "", "apply", "--namespace", namespace, "-f", "sample.yaml")
	p.WaitForLine(t, e.SampleLine)
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
	compare(t, append(slices.Clone(e.Started), e.SampleLine), p.Lines())
}

// There before the start, added, modified, deleted: each told, once.
func (e Example) testLife(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := e.cluster(t, program)
	namespace := cluster.Namespace(t)
	e.apply(t, cluster, namespace, "before", false)

	p := cluster.Run(t, program, "run", "--namespace", namespace)
	waitForAll(t, p, e.Added("before"))
	e.apply(t, cluster, namespace, "fresh", false)
	waitForAll(t, p, e.Added("fresh"))
	e.apply(t, cluster, namespace, "before", true)
	e.delete(t, cluster, namespace, "before")
	waitForAll(t, p, e.Deleted("before"))

	// Another start begins with what is there then.
	second := cluster.Run(t, program, "--namespace", namespace)
	waitForAll(t, second, e.Added("fresh"))
	for _, each := range []*yaretest.Process{p, second} {
		if status := each.Interrupt(t); status != 0 {
			t.Errorf("after SIGINT the status is %d", status)
		}
	}
	compare(t, slices.Concat(e.Started, e.Added("before"), e.Added("fresh"),
		e.Modified("before"), e.Deleted("before")), p.Lines())
	compare(t, slices.Concat(e.Started, e.Added("fresh")), second.Lines())
	for _, line := range p.Log() {
		t.Errorf("there was no trouble, but it logged: %s", line)
	}
}

// With --namespace, which may be repeated, the others are not shown; without, all are.
func (e Example) testNamespaces(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := e.cluster(t, program)
	one, two, other := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t)
	all := cluster.Run(t, program)
	narrow := cluster.Run(t, program, "--namespace", one, "-n="+two)
	// The other's comes first, so that it would be seen before those that are waited for.
	for _, object := range []struct{ namespace, name string }{{other, "hidden-" + other}, {one, "first-" + one}, {two, "second-" + two}} {
		e.apply(t, cluster, object.namespace, object.name, false)
		waitForAll(t, all, e.Added(object.name))
	}
	waitForAll(t, narrow, e.Added("first-"+one))
	waitForAll(t, narrow, e.Added("second-"+two))
	narrow.Interrupt(t)
	got := slices.Sorted(slices.Values(narrow.Lines()))
	compare(t, slices.Sorted(slices.Values(slices.Concat(e.Started, e.Added("first-"+one), e.Added("second-"+two)))), got)
}

// In its own namespace, with the right to list and watch its kind and nothing else, it
// runs as well.
func (e Example) testFewRights(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := e.cluster(t, program)
	namespace := cluster.Namespace(t)
	account := cluster.ServiceAccount(t, namespace)
	account.Allow(t, namespace, rbacv1.PolicyRule{
		APIGroups: []string{e.Group}, Resources: []string{e.Plural}, Verbs: []string{"get", "list", "watch"},
	})
	p := yaretest.Run(t, account.Kubeconfig(), program, "--namespace", namespace)
	e.apply(t, cluster, namespace, "fresh", false)
	waitForAll(t, p, e.Added("fresh"))
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
	compare(t, e.Added("fresh"), e.withoutErrors(p.Lines()))
}

// withoutErrors leaves out what is printed at the start, and what may be due to errors.
func (e Example) withoutErrors(lines []string) []string {
	var rest []string
	for _, line := range lines[min(len(lines), len(e.Started)):] {
		if !e.IsError(line) {
			rest = append(rest, line)
		}
	}
	return rest
}

// An API server that is stopped, or that crashes, under the program: an error is told, and
// afterwards it goes on where it was and repeats nothing.
func (e Example) testServerRestarts(t *testing.T) {
	program := yaretest.Build(t, ".")
	cluster := yaretest.New(t)
	e.define(t, cluster, program)
	e.apply(t, cluster, "default", "before", false)
	p := cluster.Run(t, program)
	waitForAll(t, p, e.Added("before"))
	want := e.Added("before")
	for name, end := range map[string]func(testing.TB, string){"stopped": cluster.Stop, "killed": cluster.Kill} {
		before := e.errors(p)
		end(t, yaretest.APIServer)
		yaretest.Eventually(t, func() error {
			if e.errors(p) == before {
				return errNoError
			}
			return nil
		})
		cluster.StartComponent(t, yaretest.APIServer)
		e.apply(t, cluster, "default", name, false)
		waitForAll(t, p, e.Added(name))
		want = slices.Concat(want, e.Added(name))
	}
	e.delete(t, cluster, "default", "before")
	waitForAll(t, p, e.Deleted("before"))
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
	compare(t, slices.Concat(want, e.Deleted("before")), e.withoutErrors(p.Lines()))
}

// errors counts the lines that are due to errors.
func (e Example) errors(p *yaretest.Process) (n int) {
	for _, line := range p.Lines() {
		if e.IsError(line) {
			n++
		}
	}
	return n
}

var errNoError = errors.New("the server is away, and no error was told")
