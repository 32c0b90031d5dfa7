package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/yaretest"
)

// lensSpec1 and lensSpec2 are the specs of a cluster-scoped kind in the versions V.
type (
	lensSpec1[V interface{ Definition() kube.Definition }] struct {
		Colour string `json:"colour,omitempty"`
		Note   string `json:"note,omitempty"`
	}
	lensSpec2[V interface{ Definition() kube.Definition }] struct {
		Hue string `json:"hue,omitempty"`
	}
)

func (lensSpec1[V]) Definition() kube.Definition { return lensDefinition[V]() }
func (lensSpec2[V]) Definition() kube.Definition { return lensDefinition[V]() }

func lensDefinition[V interface{ Definition() kube.Definition }]() kube.Definition {
	var v V
	d := v.Definition()
	d.Group, d.Kind, d.Plural, d.ClusterScoped = "lenses.versions.example.com", "Lens", "lenses", true
	return d
}

type (
	lens1[V interface{ Definition() kube.Definition }] = kube.CustomResource[lensSpec1[V], kube.None]
	lens2[V interface{ Definition() kube.Definition }] = kube.CustomResource[lensSpec2[V], kube.None]
)

// convertsLens returns a converter whose function to v2 panics for the colour panic.
func convertsLens[V, W interface{ Definition() kube.Definition }]() operator.Part {
	return conversion.Between(func(a *lens1[V], b *lens2[W]) {
		if a.Spec.Colour == "panic" {
			panic("this colour is not known")
		}
		b.Spec.Hue = a.Spec.Colour
	}, func(b *lens2[W], a *lens1[V]) { a.Spec.Colour = b.Spec.Hue })
}

// A cluster-scoped kind is converted, checked and migrated as a kind in namespaces. The check names the objects that would be
// incomplete before their version is stored, and migrate leaves incomplete objects alone.
func TestVersionsOfAClusterScopedKind(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	client := cluster.Client(t)
	cluster.Define(t, typeOf[lens1[v1Stored]](t), typeOf[lens2[v2Served]](t))
	run := yaretest.RunParts(t, cluster, convertsLens[v1Stored, v2Served]())
	first, second := kube.Everywhere[lens1[v1Stored]](client), kube.Everywhere[lens2[v2Served]](client)
	for name, spec := range map[string]lensSpec1[v1Stored]{
		"plain": {Colour: "red"}, "noted": {Colour: "blue", Note: "of my aunt"}, "broken": {Colour: "panic", Note: "of my uncle"},
	} {
		if _, err := first.Create(t.Context(), &lens1[v1Stored]{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := second.Modify(t.Context(), "noted", func(l *lens2[v2Served]) error { l.Spec.Hue = "green"; return nil }); err != nil {
		t.Fatal(err)
	}
	if l, err := first.Get(t.Context(), "noted"); err != nil || l.Spec != (lensSpec1[v1Stored]{"green", "of my aunt"}) || len(l.Annotations) != 0 {
		t.Errorf("after an edit in v2 it is %+v, %v", l, err)
	}

	call := func(args ...string) (status int, stdout, stderr string) {
		t.Helper()
		program := operator.Program{Parts: func() ([]operator.Part, error) {
			return []operator.Part{convertsLens[v1Served, v2Stored]()}, nil
		}}
		return operator.CallProgram(t.Context(), "lenses", program, append(args, "--kubeconfig", cluster.Kubeconfig())...)
	}
	check := func() error {
		t.Helper()
		if status, _, stderr := call("manifests", "--image=i:1", "--check", "--webhooks="); status != 0 {
			return errors.New(stderr)
		}
		return nil
	}
	err := check()
	if err == nil || !strings.Contains(err.Error(), "the conversion to v2 leaves something out of 1 objects") || !strings.Contains(err.Error(), "The first ones are broken") {
		t.Errorf("the check of a storage version in which an object would be incomplete: %v", err)
	}

	// The administrator goes on without the check.
	run.Stop()
	cluster.Define(t, typeOf[lens1[v1Served]](t), typeOf[lens2[v2Stored]](t))
	yaretest.RunParts(t, cluster, convertsLens[v1Served, v2Stored]())
	before, err := first.Get(t.Context(), "broken")
	if err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := call("migrate", "--yes")
	if status != 1 || !strings.Contains(stdout+stderr, "lenses.lenses.versions.example.com broken has the annotation versions.yare.dev/incomplete") {
		t.Errorf("migrate: status %d, %s\n%s", status, stderr, stdout)
	}
	if after, err := first.Get(t.Context(), "broken"); err != nil || after.ResourceVersion != before.ResourceVersion || after.Spec != before.Spec {
		t.Errorf("migrate has changed the incomplete object to %+v, %v", after, err)
	}
	if _, err := first.Modify(t.Context(), "broken", func(l *lens1[v1Stored]) error { l.Spec.Colour = "blue"; return nil }); err != nil {
		t.Fatalf("it cannot be mended: %v", err)
	}
	if err := check(); err != nil {
		t.Errorf("the check after the mending: %v", err)
	}
	yaretest.Eventually(t, func() error {
		if status, stdout, stderr := call("migrate", "--yes"); status != 0 {
			return fmt.Errorf("migrate: status %d, %s\n%s", status, stderr, stdout)
		}
		return nil
	})
	stored := cluster.Kubectl(t, "", "get", "crd", "lenses.lenses.versions.example.com", "-o", "jsonpath={.status.storedVersions}")
	if l, err := first.Get(t.Context(), "broken"); err != nil || l.Spec != (lensSpec1[v1Stored]{"blue", "of my uncle"}) || stored != `["v2"]` {
		t.Errorf("at the end it is %+v, %v, and the stored versions are %s", l, err, stored)
	}
}
