package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/yare-go/yare/internal/testkit/gadget"
	"github.com/yare-go/yare/internal/testkit/testcert"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/webhook/internal/admission"
	"github.com/yare-go/yare/yaretest"
)

// served is a Handler that an API server calls, with the calls that it has answered.
type served struct {
	*recorder
	client *kube.Client
}

// recorder records calls.
type recorder struct {
	mu      sync.Mutex
	calls   []string // webhook, operation and result
	dropped int
}

func (r *recorder) ObserveCall(webhook, operation string, result admission.Result, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, strings.SplitN(webhook, ".", 2)[0]+" "+operation+" "+string(result))
}

func (r *recorder) ObserveDropped(_ string, fields int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped += fields
}

// recorded returns the calls since the last time.
func (r *recorder) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// serve serves webhooks of widgets to the API server, for a namespace of the test.
func serve(t *testing.T, cluster *yaretest.Cluster, namespace string, isStrict bool, webhooks ...*admission.Webhook) *served {
	t.Helper()
	s := &served{client: cluster.Client(t)}
	probe := gadget.Object(t, widgets(t), namespace, "probe", `{"spec":{}}`)
	var isCalled func() error
	s.recorder, isCalled = serveTo(t, s.client, namespace, isStrict, webhooks...)
	yaretest.Eventually(t, func() error {
		if _, err := kube.Dynamic(s.client, widgets(t), namespace).Create(t.Context(), probe, kube.DryRun()); err != nil {
			return nil //nolint:nilerr // a webhook has refused the probe
		}
		return isCalled()
	})
	s.recorded()
	return s
}

// serveTo serves webhooks to an API server, for a namespace of the test. It returns what was called, and a function that
// returns an error until each webhook was called.
func serveTo(t *testing.T, c *kube.Client, namespace string, isStrict bool, webhooks ...*admission.Webhook) (*recorder, func() error) {
	t.Helper()
	r := &recorder{}
	h, err := admission.NewHandler(webhooks, admission.Options{Client: c, IsStrict: isStrict, Logger: slog.New(slog.DiscardHandler), Observer: r})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(h)
	t.Cleanup(func() {
		server.Close()
		if err := h.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	validating, mutating, err := admission.Entries(webhooks, configuration.Target{
		URL: server.URL, Namespaces: []string{namespace},
		CABundle: testcert.PEM(server.Certificate()),
	})
	if err != nil {
		t.Fatal(err)
	}
	configure(t, c, namespace, "Validating", validating)
	configure(t, c, namespace, "Mutating", mutating)
	return r, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, each := range webhooks {
			name := strings.SplitN(each.Name(), ".", 2)[0]
			if !slices.ContainsFunc(r.calls, func(call string) bool { return strings.HasPrefix(call, name) }) {
				return errors.New("the API server does not call " + each.Name())
			}
		}
		return nil
	}
}

// configure creates a configuration of webhooks, and deletes it after t.
func configure(t *testing.T, c *kube.Client, name, kind string, entries any) {
	t.Helper()
	r := gadget.Resource("admissionregistration.k8s.io", "v1", kind+"WebhookConfiguration", strings.ToLower(kind)+"webhookconfigurations")
	r.ClusterScoped = true
	content, err := kube.Marshal(map[string]any{"metadata": map[string]any{}, "webhooks": entries})
	if err != nil {
		t.Fatal(err)
	}
	configurations := kube.Dynamic(c, r, "")
	if _, err := configurations.Create(t.Context(), gadget.Object(t, r, "", name, string(content))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := configurations.Delete(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
}

// The kind of these tests.
type (
	widgetSpec struct {
		Schedule string            `json:"schedule,omitempty"`
		Replicas int32             `json:"replicas,omitempty"`
		Limit    *int32            `json:"limit,omitempty"`
		Policy   string            `json:"policy,omitempty"`
		Ports    []widgetPort      `json:"ports,omitempty" crd:"listType=map,listMapKey=name"`
		Tags     []string          `json:"tags,omitempty" crd:"listType=set"`
		Args     []string          `json:"args,omitempty"`
		Content  map[string]string `json:"content,omitempty"`
		Box      widgetBox         `json:"box,omitzero"`
		Boxes    []widgetBox       `json:"boxes,omitempty"`
		Atom     *widgetBox        `json:"atom,omitempty" crd:"mapType=atomic"`
	}
	widgetPort struct {
		Name     string `json:"name"`
		Port     int32  `json:"port,omitempty"`
		Protocol string `json:"protocol,omitempty"`
	}
	widgetBox struct {
		Width  int32    `json:"width,omitempty"`
		Height int32    `json:"height,omitempty"`
		Label  string   `json:"label,omitempty"`
		Tags   []string `json:"tags,omitempty"`
	}
	widgetStatus struct {
		Replicas int32  `json:"replicas,omitempty"`
		Phase    string `json:"phase,omitempty"`
	}
	widget = kube.CustomResource[widgetSpec, widgetStatus]
)

func (widgetSpec) Definition() kube.Definition {
	return kube.Definition{Group: "webhook.example.com", Version: "v1", Kind: "Widget", Scale: &kube.ScalePaths{}}
}

func widgets(t *testing.T) wire.Resource {
	t.Helper()
	r, err := kube.ResourceOf[widget]()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newWidget(namespace, name string, spec widgetSpec) *widget {
	return &widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

// checkSchedule refuses schedules that begin with "bad".
func checkSchedule(_ context.Context, _, after *widget, _ *kube.Client) error {
	if after != nil && strings.HasPrefix(after.Spec.Schedule, "bad") {
		return field.Invalid(field.NewPath("spec", "schedule"), after.Spec.Schedule, "it does not parse")
	}
	return nil
}

// A validator is not called for what is not its business.
func TestWhatIsCalled(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[widget](t, cluster)
	for name, c := range map[string]struct {
		options  admission.ValidatorOptions
		metadata []string // the calls for labels and annotations
		deletion []string
	}{
		"default":   {},
		"metadata":  {admission.ValidatorOptions{Metadata: true}, []string{"validate UPDATE allowed"}, nil},
		"deletions": {admission.ValidatorOptions{Deletions: true}, nil, []string{"validate DELETE allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			s := serve(t, cluster, namespace, true,
				admission.Validator(checkSchedule, c.options), admission.Defaulter(func(context.Context, *widget) {}))
			api := kube.Namespaced[widget](s.client, namespace)
			ctx := t.Context()
			step := func(what string, err error, calls ...string) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if got := s.recorded(); !slices.Equal(got, calls) {
					t.Errorf("%s: the calls are %q, not %q", what, got, calls)
				}
			}
			// The API server tries a patch with the object of its cache first. If that is old, it calls again.
			changing := "a"
			waitForCache := func() {
				t.Helper()
				yaretest.Eventually(t, func() error {
					live, err := api.Get(ctx, changing)
					if err != nil {
						return err
					}
					cached, err := s.client.Do(ctx, &wire.Request{
						Verb: wire.VerbGet, Resource: api.Resource(), Namespace: namespace, Name: changing, Query: url.Values{"resourceVersion": {"0"}},
					})
					if err == nil && !strings.Contains(string(cached.Body), `"resourceVersion":"`+live.ResourceVersion+`"`) {
						return errors.New("the cache of the API server is old")
					}
					return err
				})
			}
			patch := func(what, patch string, calls ...string) {
				t.Helper()
				waitForCache()
				_, err := api.Patch(ctx, "a", kube.MergePatch(json.RawMessage(patch)))
				step(what, err, calls...)
			}
			owner, err := kube.Create(ctx, s.client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}})
			if err != nil {
				t.Fatal(err)
			}
			created := []string{"default CREATE allowed", "validate CREATE allowed"}
			changed := []string{"default UPDATE allowed", "validate UPDATE allowed"}
			_, err = api.Create(ctx, newWidget(namespace, "a", widgetSpec{}))
			step("create", err, created...)
			patch("a field", `{"spec":{"schedule":"x"}}`, changed...)
			patch("another field", `{"spec":{"box":{"width":1}}}`, changed...)
			patch("no change", `{"spec":{"schedule":"x"}}`)
			patch("a removed field", `{"spec":{"schedule":null}}`, changed...)
			patch("a removed object", `{"spec":{"box":null}}`, changed...)
			patch("a finalizer", `{"metadata":{"finalizers":["webhook.example.com/a"]}}`)
			patch("an owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+string(owner.UID)+`"}]}}`)
			patch("no owner", `{"metadata":{"ownerReferences":null}}`)
			patch("a label", `{"metadata":{"labels":{"a":"b"}}}`, c.metadata...)
			patch("an annotation", `{"metadata":{"annotations":{"a":"b"}}}`, c.metadata...)
			patch("another label", `{"metadata":{"labels":{"a":"c"}}}`, c.metadata...)
			patch("no label", `{"metadata":{"labels":null}}`, c.metadata...)
			waitForCache()
			_, err = api.Status().Patch(ctx, "a", kube.MergePatch(json.RawMessage(`{"status":{"phase":"x"}}`)))
			step("the status", err)
			waitForCache()
			step("delete", api.Delete(ctx, "a"), c.deletion...)
			patch("a field of an object that is being deleted", `{"spec":{"schedule":"y"}}`, "validate UPDATE allowed")
			patch("no finalizer", `{"metadata":{"finalizers":null}}`)
			_, err = api.Create(ctx, newWidget(namespace, "b", widgetSpec{}))
			step("create", err, created...)
			changing = "b"
			waitForCache()
			step("delete all", api.DeleteAll(ctx, []kube.Selector{kube.Everything()}), c.deletion...)
		})
	}
}

// A user sees the errors of a validator as those of the API server.
func TestRefusalsOnARealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[widget](t, cluster)
	namespace := cluster.Namespace(t)
	var mu sync.Mutex
	attempts := 0
	s := serve(t, cluster, namespace, true, admission.Validator(func(ctx context.Context, _, after *widget, c *kube.Client) error {
		policy := field.Forbidden(field.NewPath("spec", "policy"), "it cannot be set")
		switch after.Spec.Policy {
		case "several":
			return errors.Join(policy, field.Required(field.NewPath("spec", "ports").Index(0).Child("protocol"), ""))
		case "mixed":
			return errors.Join(policy, errors.New("the moon is full"))
		case "missing":
			_, err := kube.Get[widget](ctx, c, after.Namespace, "missing")
			return err
		case "transient":
			mu.Lock()
			defer mu.Unlock()
			if attempts++; attempts == 1 {
				return fmt.Errorf("ask another server: %w", context.Canceled)
			}
		case "warning":
			admission.Warn(ctx, "take care")
		case "write":
			_, err := kube.Create(ctx, c, newWidget(after.Namespace, "other", widgetSpec{}))
			return err
		case "panic":
			panic("at the disco")
		case "unknown path":
			return field.Invalid(field.NewPath("spec", "polcy"), "", "")
		}
		return nil
	}, admission.ValidatorOptions{}))
	create := func(policy string) error {
		_, err := kube.Create(t.Context(), s.client, newWidget(namespace, strings.ReplaceAll(policy, " ", "-"), widgetSpec{Policy: policy}))
		return err
	}
	err := create("several")
	status, _ := kube.AsError(err)
	if !kube.IsInvalid(err) || status.Code != 422 {
		t.Fatalf("several field errors: %v", err)
	}
	details, err := json.Marshal(status.Answer.Details)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"several","group":"webhook.example.com","kind":"Widget","causes":[` +
		`{"reason":"FieldValueForbidden","message":"Forbidden: it cannot be set","field":"spec.policy"},` +
		`{"reason":"FieldValueRequired","message":"Required value","field":"spec.ports[0].protocol"}]}`; string(details) != want {
		t.Errorf("the details are %s", details)
	}
	if want := `admission webhook "validate.widgets.webhook.example.com" denied the request: Widget.webhook.example.com "several" is invalid: ` +
		`[spec.policy: Forbidden: it cannot be set, spec.ports[0].protocol: Required value]`; status.Answer.Message != want {
		t.Errorf("the message is %s", status.Answer.Message)
	}
	for policy, want := range map[string]struct {
		code int
		text string
	}{
		"mixed":        {403, "the moon is full"},
		"missing":      {403, `widgets.webhook.example.com "missing" not found`},
		"write":        {403, `create widgets.webhook.example.com "` + namespace + `/other": the webhook validate.widgets.webhook.example.com must not write`},
		"panic":        {500, "at the disco"},
		"unknown path": {500, `the path "spec.polcy": the type has no field spec.polcy`},
	} {
		err := create(policy)
		if e, ok := kube.AsError(err); !ok || e.Code != want.code || !strings.Contains(e.Answer.Message, want.text) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	s.recorded()
	if err := create("transient"); err != nil {
		t.Errorf("an error that passes by itself: %v", err)
	}
	if got := s.recorded(); !slices.Equal(got, []string{"validate CREATE unavailable", "validate CREATE allowed"}) {
		t.Errorf("the calls are %q", got)
	}
	_, stderr, err := cluster.TryKubectl(t, `{"apiVersion":"webhook.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"policy":"warning"}}`,
		"create", "-n", namespace, "-f", "-")
	if err != nil || !strings.Contains(stderr, "Warning: take care") {
		t.Errorf("a warning: %v, %s", err, stderr)
	}
}

// An object that was invalid before can be changed elsewhere.
func TestRatchetingOnARealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[widget](t, cluster)
	for name, isOff := range map[string]bool{"on": false, "off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			if _, err := kube.Create(t.Context(), cluster.Client(t), newWidget(namespace, "old", widgetSpec{Schedule: "bad"})); err != nil {
				t.Fatal(err)
			}
			s := serve(t, cluster, namespace, true, admission.Validator(checkSchedule, admission.ValidatorOptions{NoRatcheting: isOff}))
			_, stderr, err := cluster.TryKubectl(t, "", "patch", "-n", namespace, "widget", "old", "--type=merge", "-p", `{"spec":{"policy":"x"}}`)
			if isOff != (err != nil) || !strings.Contains(stderr, `spec.schedule: Invalid value: "bad": it does not parse`) {
				t.Errorf("an old error: %v, %s", err, stderr)
			}
			_, err = kube.Namespaced[widget](s.client, namespace).Patch(t.Context(), "old", kube.MergePatch(json.RawMessage(`{"spec":{"schedule":"bad too"}}`)))
			if !kube.IsInvalid(err) {
				t.Errorf("a new error: %v", err)
			}
		})
	}
}

// A write to the scale reaches the validator with the whole object.
func TestScaleOnARealServer(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[widget](t, cluster)
	namespace := cluster.Namespace(t)
	var mu sync.Mutex
	var seen []string
	s := serve(t, cluster, namespace, true, admission.Validator(func(ctx context.Context, before, after *widget, _ *kube.Client) error {
		if before == nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %s %d to %d by %s", admission.CallOf(ctx).Subresource, after.Spec.Schedule, before.Spec.Replicas, after.Spec.Replicas,
			admission.CallOf(ctx).Operation))
		if after.Spec.Replicas > 5 {
			return field.Invalid(field.NewPath("spec", "replicas"), after.Spec.Replicas, "it is above 5")
		}
		return nil
	}, admission.ValidatorOptions{}))
	api := kube.Namespaced[widget](s.client, namespace)
	if _, err := api.Create(t.Context(), newWidget(namespace, "a", widgetSpec{Schedule: "x", Replicas: 1})); err != nil {
		t.Fatal(err)
	}
	scale := func(n string) (string, error) {
		_, stderr, err := cluster.TryKubectl(t, "", "scale", "-n", namespace, "widget", "a", "--replicas="+n)
		return stderr, err
	}
	for _, n := range []string{"3", "0", "2"} {
		if stderr, err := scale(n); err != nil {
			t.Fatal(err, stderr)
		}
	}
	if stderr, err := scale("7"); err == nil || !strings.Contains(stderr, "spec.replicas: Invalid value: 7: it is above 5") {
		t.Errorf("a scale that is refused: %v, %s", err, stderr)
	}
	if live, err := api.Get(t.Context(), "a"); err != nil || live.Spec.Replicas != 2 {
		t.Errorf("the object is %+v, %v", live, err)
	}
	mu.Lock()
	defer mu.Unlock()
	// The last one is the call for ratcheting.
	if want := []string{"scale x 1 to 3 by UPDATE", "scale x 3 to 0 by UPDATE", "scale x 0 to 2 by UPDATE", "scale x 2 to 7 by UPDATE", "scale x 2 to 2 by UPDATE"}; !slices.Equal(seen, want) {
		t.Errorf("the validator has seen %q", seen)
	}
}

// Server-side apply does not conflict with defaults.
func TestApplyAfterDefaults(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[widget](t, cluster)
	namespace := cluster.Namespace(t)
	s := serve(t, cluster, namespace, true, admission.Defaulter(func(_ context.Context, w *widget) {
		if w.Spec.Policy == "" {
			w.Spec.Policy = "default " + w.Spec.Schedule
		}
		if w.Spec.Limit == nil {
			w.Spec.Limit = new(int32(3))
		}
		for i := range w.Spec.Ports {
			if w.Spec.Ports[i].Protocol == "" {
				w.Spec.Ports[i].Protocol = "TCP"
			}
		}
	}))
	widgets := kube.Dynamic(s.client, widgets(t), namespace)
	apply := func(manager, spec string) *unstructured.Unstructured {
		t.Helper()
		live, err := kube.Dynamic(s.client.WithFieldManager(manager), widgets.Resource(), namespace).
			Apply(t.Context(), gadget.Object(t, widgets.Resource(), namespace, "a", `{"spec":`+spec+`}`), kube.NoForce())
		if err != nil {
			t.Errorf("%s applies %s: %v", manager, spec, err)
			return nil
		}
		return live
	}
	check := func(live *unstructured.Unstructured, want string) {
		t.Helper()
		if live == nil {
			return
		}
		if got, err := json.Marshal(live.Object["spec"]); err != nil || string(got) != want {
			t.Errorf("the spec is %s, %v", got, err)
		}
	}
	all := `{"limit":3,"policy":"default x","ports":[{"name":"a","protocol":"TCP"},{"name":"b","protocol":"UDP"}],"schedule":"x"}`
	spec := `{"schedule":"x","ports":[{"name":"a"},{"name":"b","protocol":"UDP"}]}`
	first := apply("one", spec)
	check(first, all)
	if again := apply("one", spec); again.GetResourceVersion() != first.GetResourceVersion() {
		t.Error("the same apply has changed the object")
	}
	check(apply("two", `{"ports":[{"name":"c"}]}`),
		`{"limit":3,"policy":"default x","ports":[{"name":"a","protocol":"TCP"},{"name":"b","protocol":"UDP"},{"name":"c","protocol":"TCP"}],"schedule":"x"}`)
	check(apply("one", `{"schedule":"y","ports":[{"name":"a"},{"name":"b","protocol":"UDP"}]}`),
		`{"limit":3,"policy":"default x","ports":[{"name":"a","protocol":"TCP"},{"name":"b","protocol":"UDP"},{"name":"c","protocol":"TCP"}],"schedule":"y"}`)
	// A manager takes over a default, and sets it back.
	for _, limit := range []string{"7", "8", "3"} {
		apply("three", `{"limit":`+limit+`}`)
	}
	// A user creates and updates an object, and later a manager applies it.
	if _, err := widgets.Create(t.Context(), gadget.Object(t, widgets.Resource(), namespace, "b", `{"spec":{"schedule":"x"}}`)); err != nil {
		t.Fatal(err)
	}
	live, err := widgets.Patch(t.Context(), "b", kube.MergePatch(json.RawMessage(`{"spec":{"ports":[{"name":"a"}]}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if managed := fmt.Sprint(live.GetManagedFields()); strings.Contains(managed, "policy") || strings.Contains(managed, "limit") {
		t.Errorf("a default has an owner: %s", managed)
	}
	for _, spec := range []string{`{"policy":"mine","limit":4}`, `{"policy":"mine"}`} {
		if _, err := widgets.Apply(t.Context(), gadget.Object(t, widgets.Resource(), namespace, "b", `{"spec":`+spec+`}`), kube.NoForce()); err != nil {
			t.Errorf("an apply of %s: %v", spec, err)
		}
	}
	if s.dropped != 0 {
		t.Errorf("%d fields were dropped", s.dropped)
	}
}
