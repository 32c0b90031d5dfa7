package noop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller/internal/noop"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/internal/testkit/gadget"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/yaretest"
)

var (
	configMaps   = gadget.Resource("", "v1", "ConfigMap", "configmaps")
	services     = gadget.Resource("", "v1", "Service", "services")
	podTemplates = gadget.Resource("", "v1", "PodTemplate", "podtemplates")
	deployments  = gadget.Resource("apps", "v1", "Deployment", "deployments")
	gadgets      = gadget.Gadgets()
)

// twins are two objects of one kind. The check decides which applies of the first are sent. Each apply
// of the second is sent. Everything else happens to both.
type twins struct {
	t        *testing.T
	resource wire.Resource
	space    string
	caches   *cache.Cache
	stream   *cache.Subscription
	plain    *kube.Client
	cached   *kube.Client
	checked  *kube.Client
	sent     atomic.Int64
	// toleratesNulls allows the server to refuse both because of a null that the server has made.
	toleratesNulls bool
}

const checked, always = "checked", "always"

func newTwins(t *testing.T, r wire.Resource) *twins {
	cluster := yaretest.Shared(t)
	if r == gadgets {
		gadget.Define(t, cluster)
	}
	p := &twins{t: t, resource: r, space: cluster.Namespace(t), plain: cluster.Client(t).WithFieldManager("us")}
	p.caches = cache.New(p.plain)
	t.Cleanup(p.caches.Close)
	synced := make(chan struct{})
	var err error
	p.stream, err = p.caches.Open(t.Context(), wire.Stream{Resource: r, Namespace: p.space}, func(e cache.Change) {
		if e.Type == cache.Synced {
			close(synced)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-synced
	p.cached = p.plain.With(func(next wire.Handler) wire.Handler {
		return wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
			p.sent.Add(1)
			return next.Do(ctx, r)
		})
	}).With(p.caches.Handler)
	p.restart()
	return p
}

// restart forgets what was applied, as a new process has.
func (p *twins) restart() {
	checker := noop.NewChecker(p.caches.View(p.stream), nil)
	p.checked = p.cached.With(func(next wire.Handler) wire.Handler {
		return checker.Handler(next, func(wire.Resource, *cache.KnownState) bool { return true })
	})
}

func (p *twins) object(name, body string) *unstructured.Unstructured {
	p.t.Helper()
	return gadget.Object(p.t, p.resource, p.space, name, body)
}

// both does something to each of the two.
func (p *twins) both(do func(api kube.API[unstructured.Unstructured], name string) error) {
	p.t.Helper()
	api := kube.Dynamic(p.plain, p.resource, p.space)
	p.checkErrors(do(api, checked), do(api, always))
}

// checkErrors fails the test if the server has refused to change one of the two. If toleratesNulls is
// true, both may be refused because of a null.
func (p *twins) checkErrors(checkedErr, alwaysErr error) {
	p.t.Helper()
	if p.toleratesNulls && isNullRefusal(checkedErr) && isNullRefusal(alwaysErr) {
		return
	}
	if checkedErr != nil || alwaysErr != nil {
		p.t.Fatalf("%s: %v; %s: %v", checked, checkedErr, always, alwaysErr)
	}
}

// isNullRefusal reports whether err refuses a null that the server itself has made. An apply that
// removes the last element of an associative list makes the list null, and the schema of the list
// does not allow null.
func isNullRefusal(err error) bool {
	return kube.IsInvalid(err) && strings.Contains(err.Error(), `Invalid value: "null"`)
}

// apply applies body to both, and returns the number of requests that the check let through.
func (p *twins) apply(body string, options ...kube.ApplyOption) int {
	p.t.Helper()
	sent, _ := p.applyOrRefuse(body, options...)
	return sent
}

// applyOrRefuse applies body to both. It returns the number of requests that the check let through, and
// whether the server has refused body because of a null.
func (p *twins) applyOrRefuse(body string, options ...kube.ApplyOption) (sent int, refused bool) {
	p.t.Helper()
	p.catchUp()
	before := p.sent.Load()
	answer, checkedErr := kube.Dynamic(p.checked, p.resource, p.space).Apply(p.t.Context(), p.object(checked, body), options...)
	sent = int(p.sent.Load() - before)
	_, alwaysErr := kube.Dynamic(p.plain, p.resource, p.space).Apply(p.t.Context(), p.object(always, body), options...)
	p.checkErrors(checkedErr, alwaysErr)
	p.alike()
	if checkedErr != nil {
		return sent, true
	}
	if diff := cmp.Diff(p.live(checked).Object["spec"], answer.Object["spec"]); diff != "" {
		p.t.Errorf("what Apply returned is not what is live:\n%s", diff)
	}
	return sent, false
}

// applyStatus does so with a status.
func (p *twins) applyStatus(body string) int {
	p.t.Helper()
	p.catchUp()
	before := p.sent.Load()
	for name, client := range map[string]*kube.Client{checked: p.checked, always: p.plain} {
		u := p.object(name, body)
		live := p.live(name)
		u.SetUID(live.GetUID())
		if _, err := kube.Dynamic(client, p.resource, p.space).Status().Apply(p.t.Context(), u); err != nil {
			p.t.Fatal(err)
		}
	}
	sent := int(p.sent.Load() - before)
	p.alike()
	return sent
}

func (p *twins) live(name string) *unstructured.Unstructured {
	p.t.Helper()
	u, err := kube.Dynamic(p.plain, p.resource, p.space).Get(p.t.Context(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// catchUp waits until the store shows what is live.
func (p *twins) catchUp() {
	p.t.Helper()
	yaretest.Eventually(p.t, func() error {
		live, err := kube.Dynamic(p.plain, p.resource, p.space).Get(p.t.Context(), checked)
		if kube.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		o, _ := p.stream.Store().Get(kube.Key{Namespace: p.space, Name: checked})
		if o.ResourceVersion != live.GetResourceVersion() {
			return fmt.Errorf("the store is at %s, the server at %s", o.ResourceVersion, live.GetResourceVersion())
		}
		return nil
	})
}

// alike compares the two, and who owns what of them.
func (p *twins) alike() {
	p.t.Helper()
	clean := func(name string) any {
		u := p.live(name)
		for _, own := range []string{"name", "uid", "resourceVersion", "creationTimestamp", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", own)
		}
		entries := make(map[string]any)
		if p.resource == deployments { // its controller works on both, each at its own pace
			unstructured.RemoveNestedField(u.Object, "status")
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
			if len(u.GetAnnotations()) == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
			}
		}
		for _, e := range u.GetManagedFields() {
			if e.Manager == "kube-controller-manager" {
				continue
			}
			entries[fmt.Sprint(e.Manager, e.Operation, e.Subresource, e.APIVersion)] = string(e.FieldsV1.Raw)
		}
		u.SetManagedFields(nil)
		for _, own := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(u.Object, "spec", own)
		}
		return []any{u.Object, entries}
	}
	if diff := cmp.Diff(clean(always), clean(checked)); diff != "" {
		p.t.Errorf("the object differs from the one to which every apply is sent:\n%s", diff)
	}
}

// merge patches both as another manager.
func (p *twins) merge(manager, patch string) {
	p.t.Helper()
	p.both(func(api kube.API[unstructured.Unstructured], name string) error {
		_, err := api.Patch(p.t.Context(), name, kube.MergePatch(json.RawMessage(patch)), kube.FieldManager(manager))
		return err
	})
}

// force applies body to both as another manager.
func (p *twins) force(manager, body string) {
	p.t.Helper()
	p.both(func(api kube.API[unstructured.Unstructured], name string) error {
		_, err := api.Apply(p.t.Context(), p.object(name, body), kube.FieldManager(manager))
		return err
	})
}

// want checks a number of requests.
func (p *twins) want(what string, want, got int) {
	p.t.Helper()
	if got != want {
		p.t.Errorf("%s: %d requests, want %d", what, got, want)
	}
}
