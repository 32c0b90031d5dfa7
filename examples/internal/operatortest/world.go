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

// world is a namespace with an operator of its own, which reaches the server through a proxy.
type world struct {
	Operator
	cluster   *yaretest.Cluster
	program   string
	namespace string
	client    *kube.Client
	proxy     *yaretest.Proxy
	running   *yaretest.Process
}

// newWorld returns a world whose operator does not run yet.
func newWorld(t *testing.T, o Operator, cluster *yaretest.Cluster, program, namespace string, proxy *yaretest.Proxy) *world {
	t.Helper()
	return &world{Operator: o, cluster: cluster, program: program, namespace: namespace, proxy: proxy, client: cluster.Client(t).WithFieldManager("user")}
}

// requireNoRefusal fails t at its end if the operator sent a request that it had no right to.
func (w *world) requireNoRefusal(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for _, r := range w.proxy.Requests() {
			if r.Code == http.StatusForbidden {
				t.Errorf("it tried what it has no right to: %s", r)
				break
			}
		}
	})
}

func (w *world) start(t *testing.T) {
	t.Helper()
	w.running = yaretest.Run(t, w.proxy.Kubeconfig(), w.program, "-v", "--watch-namespace", w.namespace)
}

// stop ends the operator as users do.
func (w *world) stop(t *testing.T) {
	t.Helper()
	if status := w.running.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
}

func (w *world) api() kube.API[unstructured.Unstructured] {
	return kube.Dynamic(w.client, w.Resource, w.namespace)
}

// apply creates or changes an object.
func (w *world) apply(t *testing.T, name string, s State) {
	t.Helper()
	w.applyText(t, w.Object(name, s))
}

// applyText creates or changes an object that is written as YAML, in the namespace of the world.
func (w *world) applyText(t *testing.T, text string) {
	t.Helper()
	object := parse(t, text)[0]
	object.SetNamespace(w.namespace)
	if _, err := w.api().Apply(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func (w *world) delete(t *testing.T, name string) {
	t.Helper()
	if err := w.api().Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// waitUntilReady waits until an object and its children are as they must be.
func (w *world) waitUntilReady(t *testing.T, name string, s State) {
	t.Helper()
	yaretest.Eventually(t, func() error { return w.check(t, name, s) })
}

// check returns an error if an object or its children differ from the state that they must have.
func (w *world) check(t *testing.T, name string, s State) error {
	t.Helper()
	object, err := w.api().Get(t.Context(), name)
	if err != nil {
		return err
	}
	if object.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s is being deleted", name)
	}
	if w.Ready != nil {
		if err := w.Ready(object, s); err != nil {
			return err
		}
	}
	for _, want := range parse(t, w.Children(name, s)) {
		child, err := w.apiOf(t, want).Get(t.Context(), want.GetName())
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
func (w *world) waitUntilGone(t *testing.T, name string) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		if err := missing(t.Context(), w.api(), name); err != nil {
			return err
		}
		for _, child := range parse(t, w.Children(name, first)) {
			if err := missing(t.Context(), w.apiOf(t, child), child.GetName()); err != nil {
				return err
			}
		}
		return nil
	})
}

func missing(ctx context.Context, api kube.API[unstructured.Unstructured], name string) error {
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
func (w *world) requireNoErrors(t *testing.T) {
	t.Helper()
	for _, line := range w.errorLines() {
		t.Errorf("nothing failed, but it logged: %s", line)
	}
}

// errorLines returns the errors and warnings that the operator logged.
func (w *world) errorLines() (lines []string) {
	for _, line := range w.running.Log() {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// failures returns how many reconciles have failed, and the names of the objects whose last reconcile
// has failed.
func (w *world) failures(t *testing.T) (count int, failing []string) {
	t.Helper()
	last := make(map[string]bool)
	for _, text := range w.running.Log() {
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

// reportCount returns how often an error of an object was logged.
func (w *world) reportCount(name string) (n int) {
	for _, line := range w.errorLines() {
		if strings.Contains(line, fmt.Sprintf("%q:%q", "name", name)) {
			n++
		}
	}
	return n
}

// waitForReports waits until the error of each bad object was logged.
func (w *world) waitForReports(t *testing.T, times int) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		for _, bad := range w.Bad {
			if n := w.reportCount(bad.Name); bad.Reported == OncePerChange && n < times {
				return fmt.Errorf("%s was reported %d times", bad.Name, n)
			}
		}
		return nil
	})
}

// kinds holds the resources of children, by kind.
var kinds = map[string]wire.Resource{
	"Deployment": {GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments"},
	"Service":    {GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Plural: "services"},
}

func (w *world) apiOf(t *testing.T, child *unstructured.Unstructured) kube.API[unstructured.Unstructured] {
	t.Helper()
	r, ok := kinds[child.GetKind()]
	if !ok {
		t.Fatalf("no resource of the kind %s is known", child.GetKind())
	}
	return kube.Dynamic(w.client, r, w.namespace)
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
