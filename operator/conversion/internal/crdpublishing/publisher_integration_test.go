package crdpublishing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/conversion/internal/crdpublishing"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/yaretest"
)

// group names the group of the kind of one test.
type group interface{ name() string }

type lampSpec[G group] struct {
	Colour string `json:"colour"`
}

func (lampSpec[G]) Definition() kube.Definition {
	var g G
	return kube.Definition{Group: g.name(), Version: "v1", Kind: "Lamp"}
}

type (
	kept    struct{}
	foreign struct{}
	checked struct{}
	done    struct{}
	handed  struct{}
	crossed struct{}
)

func (kept) name() string    { return "kept.example.com" }
func (foreign) name() string { return "foreign.example.com" }
func (checked) name() string { return "checked.example.com" }
func (done) name() string    { return "done.example.com" }
func (handed) name() string  { return "handed.example.com" }
func (crossed) name() string { return "crossed.example.com" }

// site is a CustomResourceDefinition with a program that converts its objects.
type site struct {
	*testing.T
	cluster     *yaretest.Cluster
	name        string
	definitions kube.API[unstructured.Unstructured]
	bundle      []byte
}

func newSite[G group](t *testing.T) *site {
	t.Parallel()
	cluster := yaretest.Shared(t)
	yaretest.Define[kube.CustomResource[lampSpec[G], kube.None]](t, cluster)
	var g G
	_, bundle, err := certificates.InMemory(certificates.LoopbackNames())
	if err != nil {
		t.Fatal(err)
	}
	return &site{
		T: t, cluster: cluster, name: "lamps." + g.name(), bundle: bundle,
		definitions: kube.Dynamic(cluster.Client(t), manifests.DefinitionResource(), ""),
	}
}

// publisher runs a publisher for a Service until stop is called, with the permissions of [crdpublishing.Access] alone.
func (s *site) publisher(namespace, service string) (p *crdpublishing.Publisher, stop func()) {
	s.Helper()
	account := s.cluster.ServiceAccount(s, namespace)
	for _, a := range crdpublishing.Access([]string{s.name}) {
		rule := rbacv1.PolicyRule{APIGroups: []string{a.Resource.Group}, Resources: []string{a.Resource.Plural}, ResourceNames: a.Names}
		for _, verb := range a.Verbs {
			rule.Verbs = append(rule.Verbs, string(verb))
		}
		account.Allow(s, "", rule)
	}
	p = s.newPublisher(account.Client(s), namespace, service)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
	s.Cleanup(stop)
	return p, stop
}

// newPublisher returns a publisher for a Service, which does not run.
func (s *site) newPublisher(client *kube.Client, namespace, service string) *crdpublishing.Publisher {
	s.Helper()
	p, err := crdpublishing.New(crdpublishing.Config{
		Paths: map[string]string{s.name: "/convert." + s.name}, Target: configuration.Target{ServiceNamespace: namespace, ServiceName: service},
		BundleFor: func([]byte) []byte { return s.bundle }, Changed: func() <-chan struct{} { return nil },
		Client: client.WithFieldManager(service + "-conversion"), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// waitFor waits until the conversion is served by a Service with a bundle.
func (s *site) waitFor(namespace, service string) {
	s.Helper()
	yaretest.WaitFor(s, s.definitions, s.name, func(d *unstructured.Unstructured) error { return isServedBy(d, namespace, service) })
}

// isServedBy returns an error unless the conversion of d is served by a Service with a bundle.
func isServedBy(d *unstructured.Unstructured, namespace, service string) error {
	client, _, _ := unstructured.NestedMap(d.Object, "spec", "conversion", "webhook", "clientConfig")
	of, _ := client["service"].(map[string]any)
	if of["namespace"] != namespace || of["name"] != service || client["caBundle"] == nil {
		return fmt.Errorf("the conversion is that of %v", client)
	}
	return nil
}

// The conversion comes back after somebody has replaced or removed it.
func TestConversionComesBack(t *testing.T) {
	s := newSite[kept](t)
	namespace := s.cluster.Namespace(t)
	p, _ := s.publisher(namespace, "lamps")
	s.waitFor(namespace, "lamps")
	yaretest.Eventually(t, p.Ready)
	for name, change := range map[string]func(d *unstructured.Unstructured){
		"removed": func(d *unstructured.Unstructured) { unstructured.RemoveNestedField(d.Object, "spec", "conversion") },
		"without CA": func(d *unstructured.Unstructured) {
			unstructured.RemoveNestedField(d.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		},
		"another path": func(d *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(d.Object, "/other", "spec", "conversion", "webhook", "clientConfig", "service", "path")
		},
	} {
		if _, err := s.definitions.Modify(t.Context(), s.name, func(d *unstructured.Unstructured) error { change(d); return nil }); err != nil {
			t.Fatal(name, err)
		}
		yaretest.WaitFor(t, s.definitions, s.name, func(d *unstructured.Unstructured) error {
			path, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "webhook", "clientConfig", "service", "path")
			if path != "/convert."+s.name {
				return fmt.Errorf("%s: the path is %q", name, path)
			}
			return isServedBy(d, namespace, "lamps")
		})
	}
	status := p.Status()
	if len(status) != 1 || status[0].Name != s.name {
		t.Errorf("the status is %+v", status)
	}
}

// A program does not take the conversion of another installation over while the Namespace of that installation exists.
func TestConversionOfAnotherInstallation(t *testing.T) {
	s := newSite[foreign](t)
	one, two := s.cluster.Namespace(t), s.cluster.Namespace(t)
	first, stop := s.publisher(one, "first")
	s.waitFor(one, "first")
	yaretest.Eventually(t, first.Ready)
	second, _ := s.publisher(two, "second")
	yaretest.Eventually(t, second.Ready) // a new installation becomes ready, and publishes nothing
	d, err := s.definitions.Get(t.Context(), s.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := isServedBy(d, one, "first"); err != nil {
		t.Error(err)
	}
	yaretest.Eventually(t, func() error {
		if !second.Status()[0].IsElsewhere || first.Status()[0].IsElsewhere {
			return fmt.Errorf("the first program has %+v, and the second one %+v", first.Status(), second.Status())
		}
		return nil
	})
	stop()
	if err := kube.Everywhere[corev1.Namespace](s.cluster.Client(t)).Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	s.waitFor(two, "second")
	yaretest.Eventually(t, func() error {
		if status := second.Status()[0]; status.IsElsewhere || !status.IsPublished {
			return fmt.Errorf("the second program has %+v", status)
		}
		return nil
	})
}

// An installation takes the conversion over that another one has handed to it, although the Namespace of the other one exists. Each
// state of the CustomResourceDefinition has a Service with its bundle.
//
// Regression: the command uninstall wrote the Service of the other installation without a bundle. Until the program of that
// installation had written its bundle, calls of users failed: the API server answered "corrupt object", because the conversion
// failed with "certificate signed by unknown authority".
func TestConversionIsHandedOver(t *testing.T) {
	s := newSite[handed](t)
	one, two := s.cluster.Namespace(t), s.cluster.Namespace(t)
	s.publisher(one, "first")
	s.waitFor(one, "first")
	second, _ := s.publisher(two, "second")
	yaretest.Eventually(t, second.Ready)
	d, err := s.definitions.Get(t.Context(), s.name)
	if err != nil {
		t.Fatal(err)
	}
	annotate := kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{manifests.SuccessorAnnotation: two + "/second"}}})
	if _, err := s.definitions.Patch(t.Context(), s.name, annotate); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for event, err := range s.definitions.Watch(ctx, d.GetResourceVersion()) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Object.GetName() != s.name {
			continue
		}
		if isServedBy(event.Object, two, "second") == nil {
			break
		}
		if err := isServedBy(event.Object, one, "first"); err != nil {
			t.Errorf("between both installations: %v", err)
		}
	}
}

// A publisher that sees late that another installation has taken the conversion over does not take the conversion back.
func TestConversionThatWasTakenOverUnseen(t *testing.T) {
	s := newSite[crossed](t)
	one, two := s.cluster.Namespace(t), s.cluster.Namespace(t)
	config := s.cluster.Config()
	takeOver := sync.OnceValue(func() error { // before the write of the first installation arrives
		_, err := s.newPublisher(s.cluster.Client(t), two, "second").Publish(t.Context(), s.name)
		return err
	})
	config.WrapTransport = func(connections http.RoundTripper) http.RoundTripper {
		t.Cleanup((&http.Client{Transport: connections}).CloseIdleConnections)
		return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				if err := takeOver(); err != nil {
					return nil, err
				}
			}
			return connections.RoundTrip(r)
		})
	}
	client, err := kube.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.newPublisher(client, one, "first").Publish(t.Context(), s.name); err == nil || !strings.Contains(err.Error(), "which is another installation") {
		t.Errorf("the write of the first installation: %v", err)
	}
	s.waitFor(two, "second")
}

// roundTripperFunc is a function that is an [http.RoundTripper].
type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A version comes in two steps: the program first, and then the definition. Only the installation whose Service converts
// the objects applies the definition.
func TestCheck(t *testing.T) {
	s := newSite[checked](t)
	one, two := s.cluster.Namespace(t), s.cluster.Namespace(t)
	check := func(namespace string, versions ...string) string {
		var all []crd.Version
		for _, v := range versions {
			all = append(all, crd.Version{Name: v, Served: true})
		}
		target := configuration.Target{ServiceNamespace: namespace, ServiceName: "lamps"}
		err := crdpublishing.Check(t.Context(), s.cluster.Client(t), s.name, target, all, "lamps manifests --without-definitions")
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if text := check(one, "v1"); text != "" {
		t.Errorf("nothing is new: %s", text)
	}
	if text := check(one, "v1", "v2"); !strings.Contains(text, "does not serve the version v2") || !strings.Contains(text, "lamps manifests --without-definitions") {
		t.Errorf("v2 without a conversion: %q", text)
	}
	p, _ := s.publisher(one, "lamps")
	s.waitFor(one, "lamps")
	yaretest.Eventually(t, p.Ready)
	if text := check(one, "v1", "v2"); text != "" {
		t.Errorf("v2 with a conversion: %s", text)
	}
	if text := check(two, "v1"); !strings.Contains(text, "the installation in the Namespace "+one+" converts") {
		t.Errorf("another installation: %q", text)
	}
}

// Once the old version is neither served nor stored, the program converts on, because managedFields of objects can still have the
// old version. GiveUp ends that, so that a release without a converter can be applied. When the old version is served again, the
// program publishes again.
//
// Regression: the program gave the conversion up when the old version was not served any more. Each write of an object with
// managedFields in the old version failed then, and so did the command migrate, which moves them.
func TestConversionIsGivenUp(t *testing.T) {
	s := newSite[done](t)
	namespace := s.cluster.Namespace(t)
	p, _ := s.publisher(namespace, "lamps")
	s.waitFor(namespace, "lamps")
	change := func(change func(d *unstructured.Unstructured) error) {
		t.Helper()
		if _, err := s.definitions.Modify(t.Context(), s.name, change); err != nil {
			t.Fatal(err)
		}
	}
	change(func(d *unstructured.Unstructured) error {
		versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
		if err != nil {
			return err
		}
		old := runtime.DeepCopyJSON(versions[0].(map[string]any))
		old["name"], old["served"], old["storage"] = "v0", false, false
		return unstructured.SetNestedSlice(d.Object, append(versions, old), "spec", "versions")
	})
	manager := func(d *unstructured.Unstructured) bool {
		return slices.ContainsFunc(d.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "lamps-conversion" })
	}
	change(func(d *unstructured.Unstructured) error {
		unstructured.RemoveNestedField(d.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		return nil
	})
	s.waitFor(namespace, "lamps")
	administrator := s.cluster.Client(t).WithFieldManager("lamps-conversion")
	if hadConversion, err := crdpublishing.GiveUp(t.Context(), administrator, s.name, false); !hadConversion || err != nil {
		t.Fatalf("the conversion was given up: %t, %v", hadConversion, err)
	}
	yaretest.WaitFor(t, s.definitions, s.name, func(d *unstructured.Unstructured) error {
		if manager(d) {
			return errors.New("the program owns fields")
		}
		return nil
	})
	if hadConversion, err := crdpublishing.GiveUp(t.Context(), administrator, s.name, false); hadConversion || err != nil {
		t.Errorf("the conversion was given up twice: %t, %v", hadConversion, err)
	}
	yaretest.Eventually(t, p.Ready)
	if status := p.Status(); !status[0].IsPublished {
		t.Errorf("an alert would fire: %+v", status)
	}
	change(func(d *unstructured.Unstructured) error {
		versions, _, err := unstructured.NestedSlice(d.Object, "spec", "versions")
		if err != nil {
			return err
		}
		versions[1].(map[string]any)["served"] = true
		return unstructured.SetNestedSlice(d.Object, versions, "spec", "versions")
	})
	s.waitFor(namespace, "lamps")
}
