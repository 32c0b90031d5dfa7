package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/internal/testkit/gadget"
	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
	"github.com/yare-go/yare/yaretest"
)

type (
	crateSpec struct {
		Replicas int32             `json:"replicas,omitempty"`
		Content  map[string]string `json:"content,omitempty"`
	}
	crateStatus struct {
		Replicas int32             `json:"replicas,omitempty"`
		Content  map[string]string `json:"content,omitempty"`
	}
	crate = kube.CustomResource[crateSpec, crateStatus]
)

func (crateSpec) Definition() kube.Definition {
	return kube.Definition{Group: "condition.example.com", Version: "v1", Kind: "Crate", Scale: &kube.ScalePaths{}, Tags: map[string]string{
		".spec": "preserveUnknownFields", ".status": "preserveUnknownFields",
	}}
}

// allowing is a webhook that allows all requests, and remembers what they were about.
type allowing struct {
	mu   sync.Mutex
	seen map[string]bool // path, operation and resource
}

func (a *allowing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var review struct {
		Request struct {
			UID                    string
			Operation, SubResource string
			Resource               struct{ Resource string }
		}
	}
	if err = errors.Join(err, json.Unmarshal(body, &review)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.seen[strings.Join([]string{strings.SplitN(r.URL.Path, ".", 2)[0][1:], review.Request.Operation,
		strings.TrimSuffix(review.Request.Resource.Resource+"/"+review.Request.SubResource, "/")}, " ")] = true
	a.mu.Unlock()
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}

// An expression that fails refuses the request. So the expressions get every operation and subresource that there is, in
// a namespace of their own, and large objects.
func TestConditionsNeverFail(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[crate](t, cluster)
	namespace := cluster.Namespace(t)
	client := cluster.Client(t)
	ctx := t.Context()
	hook := &allowing{seen: make(map[string]bool)}
	server := httptest.NewTLSServer(hook)
	t.Cleanup(server.Close)
	target := configuration.Target{
		URL: server.URL, Namespaces: []string{namespace},
		CABundle: testcert.PEM(server.Certificate()),
	}
	validating, mutating, err := admission.Entries([]*admission.Webhook{
		admission.Validator(func(context.Context, *crate, *crate, *kube.Client) error { return nil }, admission.ValidatorOptions{Metadata: true, Deletions: true}),
		admission.Defaulter(func(context.Context, *crate) {}),
	}, target)
	if err != nil {
		t.Fatal(err)
	}
	for _, entries := range [][]*configuration.Entry{validating, mutating} {
		for i := range entries {
			entries[i].Rules = []configuration.Rule{{Operations: []string{"*"}, APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}, Scope: "Namespaced"}}
		}
	}
	configure(t, client, namespace, "Validating", validating)
	configure(t, client, namespace, "Mutating", mutating)
	maps := kube.Namespaced[corev1.ConfigMap](client, namespace)
	newMap := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	}
	yaretest.Eventually(t, func() error {
		if _, err := maps.Create(ctx, newMap("probe", nil), kube.DryRun()); err != nil {
			return err
		}
		return hook.missing("validate CREATE configmaps", "default CREATE configmaps")
	})
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	// Fields that are absent on one side, and other types of values.
	crates := kube.Dynamic(client, crateResource(t), namespace)
	_, err = crates.Create(ctx, gadget.Object(t, crates.Resource(), namespace, "a", `{"spec":{"a":null,"b":[1,"x",{"c":1.5}],"d":{}}}`))
	must("create a custom resource", err)
	for _, patch := range []string{
		`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"labels":null,"annotations":{"a":"b"}}}`, `{"metadata":{"annotations":null}}`,
		`{"metadata":{"finalizers":["condition.example.com/a"]}}`, `{"metadata":{"finalizers":null}}`,
		`{"spec":{"b":{"c":1},"d":[1]}}`, `{"spec":{"b":true,"d":1}}`, `{"spec":{"b":1.5,"d":null}}`, `{"spec":{"replicas":1}}`,
	} {
		_, err = crates.Patch(ctx, "a", kube.MergePatch(json.RawMessage(patch)))
		must(patch, err)
	}
	_, err = crates.Status().Patch(ctx, "a", kube.MergePatch(json.RawMessage(`{"status":{"a":1}}`)))
	must("the status", err)
	_, err = crates.SetScale(ctx, "a", 3)
	must("the scale", err)
	_, err = maps.Create(ctx, newMap("fields", nil))
	must("create a ConfigMap without fields", err)
	for _, patch := range []string{`{"data":{"a":"b"}}`, `{"data":null,"binaryData":{"a":"YQ=="}}`, `{"binaryData":null,"immutable":true}`} {
		_, err = maps.Patch(ctx, "fields", kube.MergePatch(json.RawMessage(patch)))
		must(patch, err)
	}

	// Objects of 1 MB: one value, and many.
	large := map[string]map[string]string{"one": {"a": strings.Repeat("x", 1_000_000)}, "many": {}}
	for i := range 20_000 {
		large["many"][fmt.Sprintf("name-%d", i)] = strings.Repeat("x", 25)
	}
	for name, content := range large {
		_, err = maps.Create(ctx, newMap(name, content))
		must("create a large ConfigMap", err)
		_, err = kube.Create(ctx, client, &crate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: crateSpec{Content: content}})
		must("create a large custom resource", err)
		for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"finalizers":["condition.example.com/a"]}}`, `{"metadata":{"finalizers":null}}`} {
			_, err = maps.Patch(ctx, name, kube.MergePatch(json.RawMessage(patch)))
			must(patch+" of a large ConfigMap", err)
			_, err = crates.Patch(ctx, name, kube.MergePatch(json.RawMessage(patch)))
			must(patch+" of a large custom resource", err)
		}
		_, err = maps.Patch(ctx, name, kube.MergePatch(json.RawMessage(`{"data":{"a":"b"}}`)))
		must("a change of a large ConfigMap", err)
		_, err = crates.Patch(ctx, name, kube.MergePatch(json.RawMessage(`{"spec":{"content":{"name-19999":"y"}}}`)))
		must("a change of a large custom resource", err)
		_, err = crates.Status().Patch(ctx, name, kube.MergePatch(map[string]any{"status": map[string]any{"content": large["one"]}}))
		if err != nil && !strings.Contains(err.Error(), "too large") {
			t.Errorf("a large status: %v", err)
		}
		must("delete", maps.Delete(ctx, name))
		must("delete", crates.Delete(ctx, name))
	}

	// Subresources. kubectl fails at the simulated Pod, after the API server has called.
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		_, stderr, err := cluster.TryKubectl(t, stdin, append([]string{"-n", namespace}, args...)...)
		if err != nil && strings.Contains(stderr, "condition.example.com") {
			t.Errorf("kubectl %q: %v, %s", args, err, stderr)
		}
	}
	for _, args := range [][]string{
		{"create", "deployment", "d", "--image=x"}, {"scale", "deployment", "d", "--replicas=2"},
		{"patch", "deployment", "d", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1}}`},
		{"run", "p", "--image=x"}, {"wait", "--for=condition=Ready", "pod/p", "--timeout=60s"},
		{"exec", "p", "--", "true"}, {"attach", "p"}, {"get", "--raw", "/api/v1/namespaces/" + namespace + "/pods/p/proxy/"},
		{"debug", "p", "--image=x", "--target=p"}, {"label", "pod", "p", "a=b"},
		{"patch", "pod", "p", "--subresource=resize", "--type=merge", "-p", `{"spec":{"containers":[{"name":"p","resources":{"requests":{"cpu":"1m"}}}]}}`},
		{"create", "serviceaccount", "s"}, {"create", "token", "s"}, {"create", "secret", "generic", "s"}, {"delete", "secret", "s"},
		{"create", "service", "clusterip", "s", "--tcp=80"},
		{"create", "cronjob", "c", "--image=x", "--schedule=0 0 1 1 *"}, {"create", "job", "j", "--from=cronjob/c"},
	} {
		kubectl("", args...)
	}
	kubectl(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"schedulerName":"nobody","containers":[{"name":"c","image":"x"}]}}`, "create", "-f", "-")
	kubectl(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"b"},"target":{"kind":"Node","name":"x"}}`,
		"create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/b/binding", "-f", "-")
	kubectl(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`,
		"create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/p/eviction", "-f", "-")
	must("delete all ConfigMaps", maps.DeleteAll(ctx, []kube.Selector{kube.Everything()}))
	kubectl("", "delete", "deployment", "d", "--wait=false")
	if err := hook.missing(
		"validate CREATE crates", "default CREATE crates", "validate UPDATE crates", "default UPDATE crates", "validate UPDATE crates/scale",
		"validate UPDATE deployments/scale", "validate CONNECT pods/exec", "default CONNECT pods/exec", "validate CONNECT pods/attach", "validate CONNECT pods/proxy",
		"validate UPDATE pods/ephemeralcontainers", "default UPDATE pods/resize", "validate CREATE serviceaccounts/token", "validate DELETE secrets",
		"default DELETE secrets", "validate CREATE pods/binding", "default CREATE pods/binding", "validate CREATE pods/eviction", "validate DELETE configmaps",
	); err != nil {
		t.Error(err)
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	for call := range hook.seen {
		if strings.HasSuffix(call, "crates/status") {
			t.Errorf("there was a call for a status: %s", call)
		}
	}
}

// missing returns an error if one of the calls was not seen.
func (a *allowing) missing(calls ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, each := range calls {
		if !a.seen[each] {
			return fmt.Errorf("there was no call %s; there were %v", each, a.seen)
		}
	}
	return nil
}

func crateResource(t *testing.T) wire.Resource {
	t.Helper()
	r, err := kube.ResourceOf[crate]()
	if err != nil {
		t.Fatal(err)
	}
	return r
}
