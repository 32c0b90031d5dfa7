package operatortest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// world is a namespace with an operator of its own, which reaches the server through a
// proxy, with no more rights than it needs.
type world struct {
	*suite
	namespace string
	client    *kube.Client
	proxy     *yaretest.Proxy
	operator  *yaretest.Process
	// crashes is how often the operator was killed because its connection was cut.
	crashes int
}

// world returns a world in a new namespace. Its operator does not run yet.
func (s *suite) world(t *testing.T) *world {
	t.Helper()
	return s.worldIn(t, s.cluster.Namespace(t), s.account.Proxy(t))
}

func (s *suite) worldIn(t *testing.T, namespace string, proxy *yaretest.Proxy) *world {
	t.Helper()
	w := &world{suite: s, namespace: namespace, proxy: proxy, client: s.cluster.Client(t).WithFieldManager("user")}
	t.Cleanup(func() {
		for _, r := range proxy.Requests() {
			if r.Code == http.StatusForbidden {
				t.Errorf("it tried what it has no right to: %s", r)
				break
			}
		}
	})
	return w
}

func (w *world) start(t *testing.T) {
	t.Helper()
	w.operator = yaretest.Run(t, w.proxy.Kubeconfig(), w.program, "-v", "--watch-namespace", w.namespace)
}

// stop ends the operator as users do.
func (w *world) stop(t *testing.T) {
	t.Helper()
	if status := w.operator.Interrupt(t); status != 0 {
		t.Errorf("after SIGINT the status is %d", status)
	}
}

// restartIfCut kills the operator and starts it again if its connection was cut.
func (w *world) restartIfCut(t *testing.T) {
	t.Helper()
	select {
	case <-w.proxy.Cut():
		w.operator.Kill()
		w.crashes++
		w.proxy.Mend()
		w.start(t)
	default:
	}
}

func (w *world) api() kube.API[unstructured.Unstructured] {
	return kube.Dynamic(w.client, w.Resource, w.namespace)
}

// apply creates or changes an object.
func (w *world) apply(t *testing.T, name string, s State) {
	t.Helper()
	object := parse(t, w.Object(name, s))[0]
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

// waitUntilReady waits until an object and its children are as they must be, and returns their
// state.
func (w *world) waitUntilReady(t *testing.T, name string, s State) (state state) {
	t.Helper()
	yaretest.Eventually(t, func() (err error) {
		w.restartIfCut(t)
		state, err = w.check(t, name, s)
		return err
	})
	return state
}

// waitUntilGone waits until an object and its children do not exist.
func (w *world) waitUntilGone(t *testing.T, name string) {
	t.Helper()
	yaretest.Eventually(t, func() error {
		w.restartIfCut(t)
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

// kinds holds the resources of children, by kind.
var kinds = map[string]kube.Resource{
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
