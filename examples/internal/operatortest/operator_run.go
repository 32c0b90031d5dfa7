package operatortest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

// operatorRun is an operator that works in one namespace, and reaches the server through a proxy.
type operatorRun struct {
	Operator
	cluster   *yaretest.Cluster
	program   string
	namespace string
	client    *kube.Client
	proxy     *yaretest.Proxy
	process   *yaretest.Process // nil before start
}

// newOperatorRun returns an operatorRun whose process has not started.
func newOperatorRun(
	t *testing.T, o Operator, cluster *yaretest.Cluster, program, namespace string, proxy *yaretest.Proxy,
) *operatorRun {
	t.Helper()
	return &operatorRun{
		Operator: o, cluster: cluster, program: program, namespace: namespace, proxy: proxy,
		client: cluster.Client(t).WithFieldManager("user"),
	}
}

// requireNoRefusal fails t at its end if the operator sent a request that it had no right to.
func (r *operatorRun) requireNoRefusal(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for _, request := range r.proxy.Requests() {
			if request.Code == http.StatusForbidden {
				t.Errorf("it tried what it has no right to: %s", request)
				break
			}
		}
	})
}

func (r *operatorRun) start(t *testing.T) {
	t.Helper()
	r.process = yaretest.Run(t, r.proxy.Kubeconfig(), r.program, "-v", "--watch-namespace", r.namespace)
}

// stop ends the operator as users do.
func (r *operatorRun) stop(t *testing.T) {
	t.Helper()
	if status := r.process.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
}

func (r *operatorRun) api() kube.API[unstructured.Unstructured] {
	return kube.Dynamic(r.client, r.Resource, r.namespace)
}

// apply creates or changes an object.
func (r *operatorRun) apply(t *testing.T, name string, s State) {
	t.Helper()
	r.applyText(t, r.Object(name, s))
}

// applyText creates or changes an object that is written as YAML, in the namespace of the run.
func (r *operatorRun) applyText(t *testing.T, text string) {
	t.Helper()
	object := parse(t, text)[0]
	object.SetNamespace(r.namespace)
	if _, err := r.api().Apply(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (r *operatorRun) delete(t *testing.T, name string) {
	t.Helper()
	if err := r.api().Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// waitUntilReady waits until an object and its children are as they must be.
func (r *operatorRun) waitUntilReady(t *testing.T, name string, s State) {
	t.Helper()
	yaretest.Eventually(t, func() error { return r.check(t, name, s) })
}

// check returns an error if an object or its children differ from the state that they must have.
func (r *operatorRun) check(t *testing.T, name string, s State) error {
	t.Helper()
	object, err := r.api().Get(t.Context(), name)
	if err != nil {
		return err
	}
	if object.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted", name)
	}
	if r.Ready != nil {
		if err := r.Ready(object, s); err != nil {
			return err
		}
	}
	for _, want := range parse(t, r.Children(name, s)) {
		child, err := r.apiOf(t, want).Get(t.Context(), want.GetName())
		if err != nil {
			return err
		}
		if err := checkChild(object, want, child); err != nil {
			return fmt.Errorf("%s %s: %w", child.GetKind(), child.GetName(), err)
		}
	}
	return nil
}

// waitUntilGone waits until an object and its children do not exist.
func (r *operatorRun) waitUntilGone(t *testing.T, name string) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		if err := checkMissing(t.Context(), r.api(), name); err != nil {
			return err
		}
		for _, child := range parse(t, r.Children(name, firstState)) {
			if err := checkMissing(t.Context(), r.apiOf(t, child), child.GetName()); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkMissing returns an error if an object exists.
func checkMissing(ctx context.Context, api kube.API[unstructured.Unstructured], name string) error {
	switch object, err := api.Get(ctx, name); {
	case kube.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%s %s is still there, with the finalizers %q", api.Resource(), name, object.GetFinalizers())
	}
}

// requireNoErrors fails t if the operator logged an error or a warning.
func (r *operatorRun) requireNoErrors(t *testing.T) {
	t.Helper()
	for _, line := range r.errorLines() {
		t.Errorf("nothing failed, but it logged: %s", line)
	}
}

// errorLines returns the errors and warnings that the operator logged.
func (r *operatorRun) errorLines() (lines []string) {
	for _, line := range r.process.Log() {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// failures returns the number of reconciles that have failed, and the names of the objects whose last reconcile
// has failed.
func (r *operatorRun) failures(t *testing.T) (count int, failing []string) {
	t.Helper()
	last := make(map[string]bool)
	for _, text := range r.process.Log() {
		var line struct{ Msg, Name string }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		switch line.Msg {
		case "reconcile failed":
			count++
			last[line.Name] = true
		case "reconciled":
			delete(last, line.Name)
		}
	}
	return count, slices.Sorted(maps.Keys(last))
}

// reportCount returns how often an error or a warning about an object was logged.
func (r *operatorRun) reportCount(name string) (n int) {
	for _, line := range r.errorLines() {
		if strings.Contains(line, fmt.Sprintf("%q:%q", "name", name)) {
			n++
		}
	}
	return n
}

// waitForReports waits until an error of each bad object was logged that often.
func (r *operatorRun) waitForReports(t *testing.T, times int) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		for _, bad := range r.Bad {
			if n := r.reportCount(bad.Name); bad.Reported == OncePerChange && n < times {
				return fmt.Errorf("%s was reported %d times", bad.Name, n)
			}
		}
		return nil
	})
}

// childResources holds the resources of children, by kind.
var childResources = map[string]wire.Resource{
	"Deployment": {
		GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments",
	},
	"Service": {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Plural: "services"},
}

func (r *operatorRun) apiOf(t *testing.T, child *unstructured.Unstructured) kube.API[unstructured.Unstructured] {
	t.Helper()
	resource, ok := childResources[child.GetKind()]
	if !ok {
		t.Fatalf("no resource of the kind %s is known", child.GetKind())
	}
	return kube.Dynamic(r.client, resource, r.namespace)
}

// parse reads YAML documents.
func parse(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq(text, "---\n") {
		object := new(unstructured.Unstructured)
		data, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = object.UnmarshalJSON(data)
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return objects
}
