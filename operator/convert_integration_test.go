package operator_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/operator/internal/calls/certificates"
	"github.com/yare-go/yare/operator/internal/calls/configuration"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/yaretest"
)

// defineLamps defines both versions of Lamps.
func defineLamps(t *testing.T, cluster *yaretest.Cluster) {
	t.Helper()
	v1, err := kube.TypeOf[lamp1]()
	if err != nil {
		t.Fatal(err)
	}
	v2, err := kube.TypeOf[lamp2]()
	if err != nil {
		t.Fatal(err)
	}
	cluster.Define(t, v1, v2)
}

// Objects are read and written in both versions while a program with a converter runs, and after its end in the test.
func TestConversion(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineLamps(t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	run := yaretest.RunParts(t, cluster, conversion.Between(toLamp2, toLamp1), idleLamp[lamp1]())
	v1, v2 := kube.Namespaced[lamp1](client, namespace), kube.Namespaced[lamp2](client, namespace)
	if _, err := v1.Create(t.Context(), &lamp1{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: lampV1{"red-dark"}}); err != nil {
		t.Fatal(err)
	}
	second, err := v2.Get(t.Context(), "one")
	if err != nil || second.Spec != (lampV2{"red", "dark"}) {
		t.Fatalf("in v2 it is %+v, %v", second, err)
	}
	if _, err := v2.Apply(t.Context(), &lamp2{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: lampV2{Hue: "blue"}}); err != nil {
		t.Fatal(err)
	}
	run.Stop()
	if _, err := v2.Modify(t.Context(), "one", func(l *lamp2) error { l.Spec.Shade = "light"; return nil }); err != nil {
		t.Fatalf("after the end of the program: %v", err)
	}
	first, err := v1.List(t.Context())
	if err != nil || len(first) != 2 || first[0].Spec.Colour != "red-light" || first[1].Spec.Colour != "blue" {
		t.Errorf("in v1 they are %+v, %v", first, err)
	}
	for _, l := range first {
		if len(l.Annotations) != 0 {
			t.Errorf("%s has the annotations %v, but nothing is lost", l.Name, l.Annotations)
		}
	}
}

// What a version cannot express comes back, also after a write in that version.
func TestConversionKeepsWhatAVersionCannotExpress(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineLamps(t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	yaretest.RunParts(t, cluster, conversion.Between(toLamp2, toLamp1))
	v1, v2 := kube.Namespaced[lamp1](client, namespace), kube.Namespaced[lamp2](client, namespace)
	// In v2 "red-" is red without a shade, which is "red" in v1.
	if _, err := v1.Create(t.Context(), &lamp1{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: lampV1{"red-"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := v2.Modify(t.Context(), "one", func(l *lamp2) error { l.Labels = map[string]string{"a": "b"}; return nil }); err != nil {
		t.Fatal(err)
	}
	l, err := v1.Get(t.Context(), "one")
	if err != nil || l.Spec.Colour != "red-" || l.Labels["a"] != "b" || len(l.Annotations) != 0 {
		t.Errorf("it came back as %+v, %v", l, err)
	}
}

// A server-side apply in v2 leaves out a field whose value v1 has together with another one. The value goes if no manager owns fields
// in v1, and stays if one does: so the API server merges, and the guide says so. An apply of an empty value removes the value.
func TestApplyThatLeavesAPartOut(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	defineLamps(t, cluster)
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	yaretest.RunParts(t, cluster, conversion.Between(toLamp2, toLamp1))
	v1 := kube.Dynamic(client, typeOf[lamp1](t).Resource, namespace)
	v2 := kube.Dynamic(client, typeOf[lamp2](t).Resource, namespace)
	apply := func(name string, spec map[string]any) string {
		t.Helper()
		o, err := v2.Apply(t.Context(), newObject(name, spec), kube.FieldManager("user"), kube.NoForce())
		if err != nil {
			t.Fatal(err)
		}
		return specOf(o)
	}
	both, hue := map[string]any{"hue": "red", "shade": "dark"}, map[string]any{"hue": "red"}
	for name, want := range map[string]string{"alone": "map[hue:red]", "shared": "map[hue:red shade:dark]"} {
		apply(name, both)
		if name == "shared" {
			labelled := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"a": "b"}}}}
			if _, err := v1.Apply(t.Context(), labelled, kube.FieldManager("another")); err != nil {
				t.Fatal(err)
			}
		}
		if got := apply(name, hue); got != want {
			t.Errorf("%s: after an apply without the shade it is %s, want %s", name, got, want)
		}
		if got := apply(name, map[string]any{"hue": "red", "shade": ""}); got != "map[hue:red]" && got != "map[hue:red shade:]" {
			t.Errorf("%s: after an apply of an empty shade it is %s", name, got)
		}
	}
}

type ball1[G interface{ Group() string }] struct {
	Colour string `json:"colour"`
}

func (ball1[G]) Definition() kube.Definition {
	var g G
	return kube.Definition{Group: g.Group(), Version: "v1", Kind: "Ball", Storage: true}
}

type ball2[G interface{ Group() string }] struct {
	Hue string `json:"hue"`
}

func (ball2[G]) Definition() kube.Definition {
	var g G
	return kube.Definition{Group: g.Group(), Version: "v2", Kind: "Ball"}
}

type (
	lastProgram   struct{}
	orphanProgram struct{}
	twoPrograms   struct{}
	goneProgram   struct{}
)

func (lastProgram) Group() string   { return "last.example.com" }
func (orphanProgram) Group() string { return "orphan.example.com" }
func (twoPrograms) Group() string   { return "handed.example.com" }
func (goneProgram) Group() string   { return "gone.example.com" }

// withConverter makes the program of an installation one with a converter.
func withConverter[G interface{ Group() string }](i *installation) *installation {
	type (
		first  = kube.CustomResource[ball1[G], kube.None]
		second = kube.CustomResource[ball2[G], kube.None]
	)
	i.program.Parts = func() ([]operator.Part, error) {
		return []operator.Part{conversion.Between(
			func(a *first, b *second) { b.Spec.Hue = a.Spec.Colour },
			func(b *second, a *first) { a.Spec.Colour = b.Spec.Hue },
		)}, nil
	}
	return i
}

// definition returns the CustomResourceDefinition of Balls.
func (i *installation) definition(group string) *unstructured.Unstructured {
	i.t.Helper()
	d, err := kube.Dynamic(i.client, definitionResource(), "").Get(i.t.Context(), "balls."+group)
	if err != nil {
		i.t.Fatal(err)
	}
	return d
}

// checkServesStorageVersionOnly checks that the definition of Balls has no conversion, and serves the storage version of its two
// versions only.
func (i *installation) checkServesStorageVersionOnly(group string) {
	i.t.Helper()
	d := i.definition(group)
	strategy, _, _ := unstructured.NestedString(d.Object, "spec", "conversion", "strategy")
	versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
	for _, each := range versions {
		if v := each.(map[string]any); v["served"] != v["storage"] {
			i.t.Errorf("the version is %v, served %v, storage %v", v["name"], v["served"], v["storage"])
		}
	}
	if strategy != "None" || len(versions) != 2 {
		i.t.Errorf("the strategy is %q, with %d versions", strategy, len(versions))
	}
}

// The objects that stay after an uninstall can be read and written without the program.
func TestUninstallLeavesReadableObjects(t *testing.T) {
	t.Parallel()
	i := withConverter[lastProgram](newInstallation[lastProgram](t))
	i.apply("--watch-namespace", "default") // so the program has nothing to do with the objects below
	namespace := i.cluster.Namespace(t)
	balls := kube.Namespaced[kube.CustomResource[ball1[lastProgram], kube.None]](i.client, namespace)
	ball := &kube.CustomResource[ball1[lastProgram], kube.None]{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	ball.Spec.Colour = "red"
	yaretest.Eventually(t, func() error { _, err := balls.Apply(t.Context(), ball); return err })
	if status, stdout, stderr := i.call("uninstall"); status != 0 {
		t.Fatalf("%s%s", stdout, stderr)
	}
	i.checkServesStorageVersionOnly("last.example.com")
	if _, err := balls.Patch(t.Context(), "one", kube.MergePatch(map[string]any{"spec": map[string]any{"colour": "blue"}})); err != nil {
		t.Errorf("a write after the uninstall: %v", err)
	}
}

// Regression: an uninstall without the Deployment ended the conversion while both versions were served. Then API servers
// delivered the fields of one version in the other one.
func TestUninstallWithoutItsDeploymentLeavesReadableObjects(t *testing.T) {
	t.Parallel()
	i := withConverter[orphanProgram](newInstallation[orphanProgram](t))
	i.apply("--watch-namespace", "default")
	namespace := i.cluster.Namespace(t)
	ball := &kube.CustomResource[ball1[orphanProgram], kube.None]{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	ball.Spec.Colour = "red"
	yaretest.Eventually(t, func() error {
		_, err := kube.Namespaced[kube.CustomResource[ball1[orphanProgram], kube.None]](i.client, namespace).Apply(t.Context(), ball)
		return err
	})
	i.cluster.Kubectl(t, "", "delete", "deployment", i.name, "--namespace", i.in)
	if status, stdout, stderr := i.call("uninstall", "--watch-namespace", "default"); status != 0 {
		t.Fatalf("%s%s", stdout, stderr)
	}
	i.checkServesStorageVersionOnly("orphan.example.com")
}

// An uninstall refuses if objects may be stored in two versions and the program is gone, and says how to install the program again.
// Then it uninstalls.
func TestUninstallNeedsTheProgramForTwoStoredVersions(t *testing.T) {
	t.Parallel()
	i := withConverter[goneProgram](newInstallation[goneProgram](t))
	i.apply("--watch-namespace", "default")
	i.cluster.Kubectl(t, "", "patch", "crd", "balls.gone.example.com", "--subresource=status", "--type=merge", "-p", `{"status":{"storedVersions":["v1","v2"]}}`)
	i.cluster.Kubectl(t, "", "delete", "deployment", i.name, "--namespace", i.in)
	before := i.definition("gone.example.com")
	status, stdout, stderr := i.call("uninstall")
	for _, want := range []string{"nothing was removed", "balls.gone.example.com may be stored in [v2], and no program is left that converts them", "install the program once more with " + i.name + " manifests"} {
		if status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("without the program: status %d, %s%s, want %q", status, stdout, stderr, want)
		}
	}
	if after := i.definition("gone.example.com"); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the definition has changed to %v", after.Object)
	}
	i.checkExist(true, [3]string{"service", i.in, i.name})
	i.apply("--watch-namespace", "default")
	if status, stdout, stderr := i.call("uninstall"); status != 0 {
		t.Errorf("with the program: status %d, %s%s", status, stdout, stderr)
	}
	i.checkExist(false, [3]string{"crd", "", "balls.gone.example.com"}, [3]string{"service", i.in, i.name})
}

// Another installation of the program converts the objects after an uninstall. The program of that installation must run: an uninstall
// waits for it, and otherwise leaves the conversion as it is.
func TestUninstallHandsConversionsOver(t *testing.T) {
	t.Parallel()
	i := withConverter[twoPrograms](newInstallation[twoPrograms](t))
	i.apply()
	t.Cleanup(func() {
		_ = kube.Dynamic(i.client, manifests.DefinitionResource(), "").Delete(context.Background(), "balls.handed.example.com")
	})
	other := i.cluster.Namespace(t)
	i.apply("--namespace", other, "--without-definitions")
	converter := func() any {
		client, _, _ := unstructured.NestedMap(i.definition("handed.example.com").Object, "spec", "conversion", "webhook", "clientConfig")
		service, _ := client["service"].(map[string]any)
		if service["path"] != "/convert.balls.handed.example.com" {
			t.Errorf("the conversion is that of %v", client)
		}
		return service["namespace"]
	}
	status, stdout, stderr := i.call("uninstall", "--timeout", "1s")
	if want := "has not taken the conversion of customresourcedefinitions.apiextensions.k8s.io balls.handed.example.com over after 1s"; status != 1 || !strings.Contains(stderr, want) {
		t.Fatalf("without the program of the other installation: status %d, %s%s", status, stdout, stderr)
	}
	mustHaveNoAnnotations := func() {
		t.Helper()
		if annotations := i.definition("handed.example.com").GetAnnotations(); len(annotations) > 0 {
			t.Errorf("the definition has the annotations %v", annotations)
		}
	}
	mustHaveNoAnnotations()
	bundle := testBundle(t)
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	t.Cleanup(func() { cancel(); publishing.Wait() })
	service := newService(slog.New(slog.DiscardHandler))
	service.Client, service.IsPublishedByProgram = i.client.WithFieldManager("other"), true
	service.Target = configuration.Target{ServiceNamespace: other, ServiceName: i.name}
	service.BundleFor, service.Changed = func([]byte) []byte { return bundle }, func() <-chan struct{} { return nil }
	service.Go = func(f func(context.Context) error) { publishing.Go(func() { _ = f(ctx) }) } // it returns nil
	parts, err := i.program.Parts()
	if err != nil {
		t.Fatal(err)
	}
	h := handlerOf(t, service.Program, parts...)
	if err := errors.Join(h.Prepare(service), h.Start(ctx, service)); err != nil {
		t.Fatal(err)
	}
	yaretest.Eventually(t, h.Ready)
	if got := converter(); got != i.in {
		t.Errorf("before the uninstall the conversion is that of %v", got)
	}
	if status, stdout, stderr := i.call("uninstall"); status != 0 {
		t.Fatalf("%s%s", stdout, stderr)
	}
	if got := converter(); got != other {
		t.Errorf("the conversion is that of %v", got)
	}
	mustHaveNoAnnotations()
}

// testBundle returns a bundle of certificates.
func testBundle(t *testing.T) []byte {
	t.Helper()
	_, bundle, err := certificates.InMemory(certificates.LoopbackNames())
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}
