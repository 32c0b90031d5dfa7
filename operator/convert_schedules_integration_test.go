package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/testkit/serverminor"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion"
	"github.com/yare-go/yare/operator/internal/manifests"
	"github.com/yare-go/yare/operator/webhook"
	"github.com/yare-go/yare/yaretest"
)

// The tests of this file are failure schedules of conversions. YARE_VERSIONS_FULL=1 runs their full figures.

// versionsFigure returns the figure of a schedule.
func versionsFigure(small, full int) int {
	if os.Getenv("YARE_VERSIONS_FULL") != "" {
		return full
	}
	return small
}

// typeOf returns the type of T.
func typeOf[T any, P kube.DefinedObjectOf[T]](t testing.TB) kube.Type {
	t.Helper()
	found, err := kube.TypeOf[T, P]()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// newObject returns an object to write, with a name and a spec.
func newObject(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": maps.Clone(spec)}}
}

// specOf returns the spec of an object, without the type of its numbers.
func specOf(o *unstructured.Unstructured) string { return fmt.Sprint(o.Object["spec"]) }

// The older release of a program knows no watts. The newer release does.
type (
	turnOldSpec1 struct {
		Colour string `json:"colour,omitempty"`
	}
	turnOldSpec2 struct {
		Hue   string `json:"hue,omitempty"`
		Shade string `json:"shade,omitempty"`
	}
	turnSpec1 struct {
		Colour string `json:"colour,omitempty"`
		Watts  int    `json:"watts,omitempty"`
	}
	turnSpec2 struct {
		Hue   string `json:"hue,omitempty"`
		Shade string `json:"shade,omitempty"`
		Watts int    `json:"watts,omitempty"`
	}
	turnOld1 = kube.CustomResource[turnOldSpec1, kube.None]
	turnOld2 = kube.CustomResource[turnOldSpec2, kube.None]
	turn1    = kube.CustomResource[turnSpec1, kube.None]
	turn2    = kube.CustomResource[turnSpec2, kube.None]
)

const turnGroup = "turns.versions.example.com"

func (turnOldSpec1) Definition() kube.Definition { return lampDefinition(turnGroup, "v1", true) }
func (turnOldSpec2) Definition() kube.Definition { return lampDefinition(turnGroup, "v2", false) }
func (turnSpec1) Definition() kube.Definition    { return lampDefinition(turnGroup, "v1", true) }
func (turnSpec2) Definition() kube.Definition    { return lampDefinition(turnGroup, "v2", false) }

func joined(hue, shade string) string {
	if shade == "" {
		return hue
	}
	return hue + "-" + shade
}

// oldTurns and newTurns are the programs of the two releases.
func oldTurns() operator.Part {
	return conversion.Between(func(a *turnOld1, b *turnOld2) {
		b.Spec.Hue, b.Spec.Shade, _ = strings.Cut(a.Spec.Colour, "-")
	}, func(b *turnOld2, a *turnOld1) { a.Spec.Colour = joined(b.Spec.Hue, b.Spec.Shade) })
}

func newTurns() operator.Part {
	return conversion.Between(func(a *turn1, b *turn2) {
		b.Spec.Hue, b.Spec.Shade, _ = strings.Cut(a.Spec.Colour, "-")
		b.Spec.Watts = a.Spec.Watts
	}, func(b *turn2, a *turn1) {
		a.Spec.Colour, a.Spec.Watts = joined(b.Spec.Hue, b.Spec.Shade), b.Spec.Watts
	})
}

// turns is a test in which replicas of two releases convert the same object by turns.
type turns struct {
	*testing.T
	*rand.Rand
	cluster *yaretest.Cluster
	// isNew is true if the newer release converts.
	isNew  bool
	v1, v2 kube.API[unstructured.Unstructured]
	// want is the spec in v2.
	want turnSpec2
	log  []string
}

// use makes a release convert.
func (s *turns) use(isNew bool) {
	if s.isNew == isNew {
		return
	}
	s.isNew = isNew
	part := oldTurns()
	if isNew {
		part = newTurns()
	}
	yaretest.RunParts(s, s.cluster, part).Stop() // the conversions are served until another program serves them
}

// edit changes one field in one version, by one of the ways to write. Only the newer release converts an edit of the watts,
// and it has converted the write before: a user of the older release cannot see the field.
func (s *turns) edit() error {
	field := s.IntN(2)
	if field == 0 {
		if err := s.check(); err != nil {
			return err
		}
	}
	s.use(s.IntN(2) == 0 || field == 0)
	version, api := "v1", s.v1
	if s.IntN(2) == 0 {
		version, api = "v2", s.v2
	}
	spec := make(map[string]any)
	switch {
	case field == 0:
		s.want.Watts++
		spec["watts"] = int64(s.want.Watts)
	case version == "v1":
		s.want.Hue, s.want.Shade = []string{"red", "blue", "green"}[s.IntN(3)], []string{"", "dark", "light"}[s.IntN(3)]
		spec["colour"] = joined(s.want.Hue, s.want.Shade)
	default:
		s.want.Hue = []string{"red", "blue", "green"}[s.IntN(3)]
		spec["hue"] = s.want.Hue
	}
	verb := []string{"patch", "apply", "replace"}[s.IntN(3)]
	s.log = append(s.log, fmt.Sprintf("%s %s %v, new release %t", verb, version, spec, s.isNew))
	switch verb {
	case "patch":
		_, err := api.Patch(s.Context(), "lamp", kube.MergePatch(map[string]any{"spec": spec}))
		return err
	case "apply":
		manager := fmt.Sprintf("%s-%d", version, field)
		_, err := api.Apply(s.Context(), newObject("lamp", spec), kube.FieldManager(manager))
		return err
	}
	s.use(s.IntN(2) == 0 || field == 0)
	read, err := api.Get(s.Context(), "lamp")
	if err != nil {
		return err
	}
	s.use(s.IntN(2) == 0 || field == 0)
	s.log = append(s.log, fmt.Sprintf("  replaced what was %s with the annotations %v, new release %t", specOf(read), read.GetAnnotations(), s.isNew))
	maps.Copy(read.Object["spec"].(map[string]any), spec)
	_, err = api.Replace(s.Context(), read)
	return err
}

// check compares the object with the model, after a write in v2 that the newer release converts. Before such a write, watts
// of v1 can stand in the annotation alone: the schema of the older release does not know the field, so this release does not
// put the value back. After the write, the watts can still be missing in one of the versions, if a user has replaced there
// what the older release has delivered without them.
func (s *turns) check() error {
	s.use(true)
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"check": fmt.Sprint(len(s.log))}}}
	if _, err := s.v2.Patch(s.Context(), "lamp", kube.MergePatch(label)); err != nil {
		return err
	}
	s.log = append(s.log, "label v2, new release true")
	o1, err := s.v1.Get(s.Context(), "lamp")
	if err != nil {
		return err
	}
	o2, err := s.v2.Get(s.Context(), "lamp")
	if err != nil {
		return err
	}
	spec1, _ := o1.Object["spec"].(map[string]any)
	spec2, _ := o2.Object["spec"].(map[string]any)
	hue, _ := spec2["hue"].(string)
	shade, _ := spec2["shade"].(string)
	if colour := joined(s.want.Hue, s.want.Shade); spec1["colour"] != colour || joined(hue, shade) != colour {
		return fmt.Errorf("it is %v in v1 and %v in v2, want the colour %s", spec1, spec2, colour)
	}
	watts := int64(s.want.Watts)
	for _, each := range []any{spec1["watts"], spec2["watts"]} {
		if each != nil && each != watts {
			return fmt.Errorf("it is %v in v1 and %v in v2, want %d watts", spec1, spec2, watts)
		}
	}
	if spec1["watts"] == nil && spec2["watts"] == nil {
		return fmt.Errorf("it is %v in v1 and %v in v2, which has lost %d watts", spec1, spec2, watts)
	}
	return nil
}

// Row 5: replicas of two releases convert by turns, and users edit in both versions by apply, patch, and update of what
// they have read. The older release destroys no field of the newer one.
func TestTwoReleasesConvertByTurns(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[turn1](t), typeOf[turn2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	for seed := range uint64(versionsFigure(2, 20)) {
		s := &turns{T: t, Rand: rand.New(rand.NewPCG(seed, 5)), cluster: cluster,
			v1: kube.Dynamic(client, typeOf[turn1](t).Resource, namespace), v2: kube.Dynamic(client, typeOf[turn2](t).Resource, namespace)}
		s.use(true)
		s.want = turnSpec2{"red", "dark", 40}
		if _, err := s.v1.Create(t.Context(), newObject("lamp", map[string]any{"colour": "red-dark", "watts": int64(40)})); err != nil {
			t.Fatal(err)
		}
		for range 25 {
			err := s.edit()
			if err == nil && s.IntN(2) == 0 {
				err = s.check()
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(s.log, "\n"))
			}
		}
		if err := s.check(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(s.log, "\n"))
		}
		if err := s.v1.Delete(t.Context(), "lamp"); err != nil {
			t.Fatal(err)
		}
	}
}

// The two versions of the kind of row 8 have three fields of other names. Only v1 has a note.
type (
	ownSpec1 struct {
		A1   string `json:"a1,omitempty"`
		B1   string `json:"b1,omitempty"`
		C1   string `json:"c1,omitempty"`
		Note string `json:"note,omitempty"`
	}
	ownSpec2 struct {
		A2 string `json:"a2,omitempty"`
		B2 string `json:"b2,omitempty"`
		C2 string `json:"c2,omitempty"`
	}
	own1 = kube.CustomResource[ownSpec1, kube.None]
	own2 = kube.CustomResource[ownSpec2, kube.None]
)

func (ownSpec1) Definition() kube.Definition {
	return lampDefinition("owners.versions.example.com", "v1", true)
}

func (ownSpec2) Definition() kube.Definition {
	return lampDefinition("owners.versions.example.com", "v2", false)
}

// A owned field is a field of the model of row 8: its value, and the managers that own it.
type ownedField struct {
	value  string
	owners map[string]bool
}

// owners is the model of an object that two managers apply as if there were one version.
type owners map[string]*ownedField

// conflicts returns the fields for which an apply conflicts.
func (m owners) conflicts(manager string, config map[string]string) (fields []string) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		f := m[name]
		if f == nil || f.value == config[name] {
			continue
		}
		for owner := range f.owners {
			if owner != manager {
				fields = append(fields, name)
				break
			}
		}
	}
	return fields
}

// apply applies a configuration with force.
func (m owners) apply(manager string, config map[string]string) {
	for name, value := range config {
		f := m[name]
		if f == nil || f.value != value {
			f = &ownedField{value: value, owners: make(map[string]bool)}
			m[name] = f
		}
		f.owners[manager] = true
	}
	for name, f := range m {
		if _, isApplied := config[name]; isApplied || !f.owners[manager] {
			continue
		}
		if delete(f.owners, manager); len(f.owners) == 0 {
			delete(m, name)
		}
	}
}

// ownersIn returns the spec of a version with the fields of a configuration.
func ownersIn(version int, config map[string]string) map[string]any {
	spec := make(map[string]any)
	for name, value := range config {
		if name != "note" {
			name = fmt.Sprintf("%s%d", name, version)
		}
		spec[name] = value
	}
	return spec
}

// Row 8: two managers apply in two versions. An apply without news changes nothing, and there are exactly the conflicts that
// one version would have.
func TestAppliesInTwoVersions(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[own1](t), typeOf[own2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	yaretest.RunParts(t, cluster, conversion.Between(func(a *own1, b *own2) {
		b.Spec = ownSpec2{a.Spec.A1, a.Spec.B1, a.Spec.C1}
	}, func(b *own2, a *own1) { a.Spec = ownSpec1{A1: b.Spec.A2, B1: b.Spec.B2, C1: b.Spec.C2} }))
	apis := []kube.API[unstructured.Unstructured]{
		kube.Dynamic(client, typeOf[own1](t).Resource, namespace), kube.Dynamic(client, typeOf[own2](t).Resource, namespace),
	}
	random := rand.New(rand.NewPCG(8, 8))
	model := make(owners)
	conflicts := 0
	for step := range versionsFigure(60, 500) {
		version := 1 + random.IntN(2)
		api, manager := apis[version-1], fmt.Sprintf("manager%d", version)
		config := make(map[string]string)
		for _, name := range []string{"a", "b", "c", "note"} {
			if random.IntN(2) == 0 && (name != "note" || version == 1) {
				config[name] = []string{"x", "y"}[random.IntN(2)]
			}
		}
		if len(config) == 0 {
			config["a"] = "x" // an API server refuses a spec of which nothing is left, in one version too
		}
		object := newObject("shared", ownersIn(version, config))
		options := []kube.ApplyOption{kube.FieldManager(manager), kube.NoForce()}
		applied, err := api.Apply(t.Context(), object, options...)
		if want := model.conflicts(manager, config); len(want) > 0 {
			conflicts++
			if !kube.IsApplyConflict(err) {
				t.Fatalf("step %d: %s applies %v: %v, want a conflict about %v", step, manager, config, err, want)
			}
			for _, name := range want {
				if !strings.Contains(err.Error(), ".spec."+name) {
					t.Fatalf("step %d: the conflict is not about %s: %v", step, name, err)
				}
			}
			options = options[:1]
			applied, err = api.Apply(t.Context(), object, options...)
		}
		if err != nil {
			t.Fatalf("step %d: %s applies %v: %v", step, manager, config, err)
		}
		model.apply(manager, config)
		again, err := api.Apply(t.Context(), object, options...)
		if err != nil || again.GetResourceVersion() != applied.GetResourceVersion() {
			t.Fatalf("step %d: the same apply by %s changes the object: %v\nbefore %v\nafter  %v", step, manager, err, applied.Object, again.Object)
		}
		values := make(map[string]string)
		for name, f := range model {
			values[name] = f.value
		}
		for i, each := range apis {
			if i == 1 {
				delete(values, "note")
			}
			got, err := each.Get(t.Context(), "shared")
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := got.Object["spec"].(map[string]any)
			if want := ownersIn(i+1, values); fmt.Sprint(spec) != fmt.Sprint(want) {
				t.Fatalf("step %d, after %s has applied %v: in v%d it is %v, want %v\n%v", step, manager, config, i+1, spec, want, got.Object)
			}
		}
	}
	if conflicts == 0 {
		t.Error("no apply was a conflict")
	}
}

// names collects the names of objects. It is safe for concurrent use.
type names struct {
	mu    sync.Mutex
	known map[string]bool
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = make(map[string]bool)
	}
	n.known[name] = true
}

func (n *names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[name]
}

func (n *names) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.known)
}

// breakConversion makes each conversion of a kind fail, and returns when it does. The object exists.
func breakConversion(t *testing.T, cluster *yaretest.Cluster, definition string, other kube.API[unstructured.Unstructured], name string) {
	t.Helper()
	cluster.Kubectl(t, "", "patch", "crd", definition, "--type=merge", "-p", `{"spec":{"conversion":{"webhook":{"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}}}`)
	yaretest.Eventually(t, func() error {
		if _, err := other.Get(t.Context(), name); err == nil {
			return errors.New("objects are still converted")
		}
		return nil
	})
}

// The kind of row 6 is stored in v1 by one release, and in v2 by the next one.
type (
	movedSpec1 struct {
		Colour string `json:"colour,omitempty"`
	}
	movedSpec2 struct {
		Hue string `json:"hue,omitempty"`
	}
	laterSpec1 movedSpec1
	laterSpec2 movedSpec2
	moved1     = kube.CustomResource[movedSpec1, kube.None]
	moved2     = kube.CustomResource[movedSpec2, kube.None]
	later1     = kube.CustomResource[laterSpec1, kube.None]
	later2     = kube.CustomResource[laterSpec2, kube.None]
)

const movedGroup = "moved.versions.example.com"

func (movedSpec1) Definition() kube.Definition { return lampDefinition(movedGroup, "v1", true) }
func (movedSpec2) Definition() kube.Definition { return lampDefinition(movedGroup, "v2", false) }
func (laterSpec1) Definition() kube.Definition { return lampDefinition(movedGroup, "v1", false) }
func (laterSpec2) Definition() kube.Definition { return lampDefinition(movedGroup, "v2", true) }

func movedParts() operator.Part {
	return conversion.Between(func(a *moved1, b *moved2) { b.Spec.Hue = a.Spec.Colour }, func(b *moved2, a *moved1) { a.Spec.Colour = b.Spec.Hue })
}

func laterParts() operator.Part {
	return conversion.Between(func(a *later1, b *later2) { b.Spec.Hue = a.Spec.Colour }, func(b *later2, a *later1) { a.Spec.Colour = b.Spec.Hue })
}

// Row 6: all replicas are down, and nothing converts, while the storage version of the CustomResourceDefinition changes. The
// next replica becomes ready and sees all objects.
func TestStorageVersionMovesWhileAllReplicasAreDown(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t)
	cluster.Define(t, typeOf[moved1](t), typeOf[moved2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	v1, v2 := kube.Dynamic(client, typeOf[moved1](t).Resource, namespace), kube.Dynamic(client, typeOf[moved2](t).Resource, namespace)
	var before, after names
	run := yaretest.RunParts(t, cluster, movedParts(), controller.New(func(_ context.Context, l *moved1, _ *kube.Client) (controller.Action, error) {
		before.add(l.Name)
		return controller.Action{}, nil
	}))
	objects := versionsFigure(20, 1000)
	for i := range objects {
		if _, err := v1.Create(t.Context(), newObject(fmt.Sprintf("lamp-%d", i), map[string]any{"colour": fmt.Sprintf("colour %d", i)})); err != nil {
			t.Fatal(err)
		}
	}
	seen := func(n *names) func() error {
		return func() error {
			if got := n.count(); got != objects {
				return fmt.Errorf("%d of %d objects are reconciled", got, objects)
			}
			return nil
		}
	}
	yaretest.Eventually(t, seen(&before))
	run.Stop()
	breakConversion(t, cluster, "lamps."+movedGroup, v2, "lamp-0")
	cluster.Define(t, typeOf[later1](t), typeOf[later2](t))
	yaretest.RunParts(t, cluster, laterParts(), controller.New(func(_ context.Context, l *later2, _ *kube.Client) (controller.Action, error) {
		if strings.HasPrefix(l.Spec.Hue, "colour ") {
			after.add(l.Name)
		}
		return controller.Action{}, nil
	}))
	yaretest.Eventually(t, seen(&after))
	if _, err := v2.Patch(t.Context(), "lamp-0", kube.MergePatch(map[string]any{"spec": map[string]any{"hue": "green"}})); err != nil {
		t.Fatal(err)
	}
	all, err := v1.List(t.Context())
	if err != nil || len(all) != objects {
		t.Fatalf("%d objects in v1, %v", len(all), err)
	}
	if o, err := v1.Get(t.Context(), "lamp-0"); err != nil || specOf(o) != "map[colour:green]" {
		t.Errorf("in v1 it is %v, %v", o, err)
	}
}

// Row 9: users label objects and delete namespaces while nothing converts. When conversions are back, the operator owns its
// fields, and the namespaces go.
func TestUsersWriteWhileConversionIsDown(t *testing.T) {
	t.Parallel()
	cluster := yaretest.New(t)
	cluster.Define(t, typeOf[moved1](t), typeOf[moved2](t))
	staying, leaving, empty, client := cluster.Namespace(t), cluster.Namespace(t), cluster.Namespace(t), cluster.Client(t)
	api := func(version kube.Type, namespace string) kube.API[unstructured.Unstructured] {
		return kube.Dynamic(client, version.Resource, namespace)
	}
	v1, v2 := typeOf[moved1](t), typeOf[moved2](t)
	run := yaretest.RunParts(t, cluster, movedParts())
	objects := versionsFigure(5, 200)
	name := func(i int) string { return fmt.Sprintf("lamp-%d", i) }
	for i := range objects {
		for _, namespace := range []string{staying, leaving} {
			if _, err := api(v2, namespace).Apply(t.Context(), newObject(name(i), map[string]any{"hue": "red"}), kube.FieldManager("operator")); err != nil {
				t.Fatal(err)
			}
		}
	}
	run.Stop()
	breakConversion(t, cluster, "lamps."+movedGroup, api(v2, staying), name(0))
	labelled := make(map[string]bool)
	for i := range objects {
		label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "blue"}}}
		_, err := api(v1, staying).Patch(t.Context(), name(i), kube.MergePatch(label))
		labelled[name(i)] = err == nil
		if i == 0 {
			t.Logf("a label while conversion is down: %v", err)
		}
	}
	namespaces := kube.Everywhere[corev1.Namespace](client)
	for _, namespace := range []string{leaving, empty} {
		if err := namespaces.Delete(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	yaretest.Eventually(t, func() error { // the namespace controller has tried
		n, err := namespaces.Get(t.Context(), leaving)
		if err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				t.Logf("the Namespace waits: %s: %.300s", c.Type, c.Message)
				return nil
			}
		}
		return errors.New("the namespace controller has reported nothing")
	})
	yaretest.RunParts(t, cluster, movedParts())
	for _, namespace := range []string{leaving, empty} {
		yaretest.Eventually(t, func() error {
			if _, err := namespaces.Get(t.Context(), namespace); !kube.IsNotFound(err) {
				return fmt.Errorf("the Namespace %s is still there: %w", namespace, err)
			}
			return nil
		})
	}
	clears := serverminor.Of(t, cluster) < 37
	for i := range objects {
		o, err := api(v2, staying).Get(t.Context(), name(i))
		if err != nil {
			t.Fatal(err)
		}
		ownsField := slices.ContainsFunc(o.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
			return m.Manager == "operator" && m.Operation == metav1.ManagedFieldsOperationApply && strings.Contains(m.FieldsV1.String(), `"f:hue"`)
		})
		// Servers before 1.37 clear managedFields in a write if they cannot convert. An apply with force sets them again.
		wasCleared := labelled[name(i)] && len(o.GetManagedFields()) == 0 && clears
		force := []kube.ApplyOption{kube.FieldManager("operator")}
		if !wasCleared {
			force = append(force, kube.NoForce())
		}
		if !ownsField && !wasCleared {
			t.Fatalf("the operator does not own its field: %v", o.GetManagedFields())
		}
		if hasLabel := o.GetLabels()["team"] == "blue"; hasLabel != labelled[name(i)] {
			t.Errorf("%s has the labels %v, and the write succeeded: %t", name(i), o.GetLabels(), labelled[name(i)])
		}
		o, err = api(v2, staying).Apply(t.Context(), newObject(name(i), map[string]any{"hue": "green"}), force...)
		if err != nil || specOf(o) != "map[hue:green]" {
			t.Fatalf("the operator cannot change its field: %v, %v", o, err)
		}
	}
}

// The objects of row 7 are stored under a schema of former times, which accepts everything.
type (
	formerSpec1 struct {
		Colour string `json:"colour,omitempty"`
		Size   int    `json:"size,omitempty"`
		Note   string `json:"note,omitempty"`
	}
	formerSpec2 struct {
		Hue  string `json:"hue,omitempty"`
		Size int    `json:"size,omitempty"`
	}
	former1 = kube.CustomResource[formerSpec1, kube.None]
	former2 = kube.CustomResource[formerSpec2, kube.None]
)

const formerGroup = "former.versions.example.com"

func (formerSpec1) Definition() kube.Definition { return lampDefinition(formerGroup, "v1", true) }
func (formerSpec2) Definition() kube.Definition { return lampDefinition(formerGroup, "v2", false) }

// Row 7: stored objects fit no Go type, make a function panic, and keep 200 KiB. Every list succeeds. The round trip is
// exact, or the object is incomplete, and no write in the other version changes it. Nothing incomplete is cleaned up.
func TestStoredObjectsThatDoNotConvert(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[former1](t), typeOf[former2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	v1, v2 := kube.Dynamic(client, typeOf[former1](t).Resource, namespace), kube.Dynamic(client, typeOf[former2](t).Resource, namespace)
	const anything = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	cluster.Kubectl(t, "", "patch", "crd", "lamps."+formerGroup, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":`+anything+`},{"op":"replace","path":"/spec/versions/1/schema/openAPIV3Schema","value":`+anything+`}]`)
	const finalizer = "former.example.com/cleanup"
	stored := map[string]map[string]any{
		"number": {"colour": int64(7), "size": int64(1)},
		"text":   {"colour": "red", "size": "large"},
		"list":   {"colour": []any{"red", int64(7)}},
		"null":   {"colour": nil, "size": int64(2)},
		"right":  {"colour": "red", "note": "short"},
		"panic":  {"colour": "panic"},
		"big":    {"colour": "red", "note": strings.Repeat("n", 200<<10)},
	}
	isIncomplete := map[string]bool{"panic": true, "big": true}
	for name, spec := range stored {
		o := newObject(name, spec)
		o.SetFinalizers([]string{finalizer})
		yaretest.Eventually(t, func() error { // the server uses the former schema a moment later
			_, err := v1.Create(t.Context(), o)
			return err
		})
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "bare"}}}
	bare.SetFinalizers([]string{finalizer})
	if _, err := v1.Create(t.Context(), bare); err != nil {
		t.Fatal(err)
	}
	stored["bare"] = nil
	cluster.Define(t, typeOf[former1](t), typeOf[former2](t))
	yaretest.Eventually(t, func() error {
		if _, err := v1.Create(t.Context(), newObject("probe", map[string]any{"colour": int64(7)}), kube.DryRun()); !kube.IsInvalid(err) {
			return fmt.Errorf("the server uses the former schema: %w", err)
		}
		return nil
	})
	converter := conversion.Between(func(a *former1, b *former2) {
		if a.Spec.Colour == "panic" {
			panic("this colour is not known")
		}
		b.Spec = formerSpec2{a.Spec.Colour, a.Spec.Size}
	}, func(b *former2, a *former1) { a.Spec = formerSpec1{Colour: b.Spec.Hue, Size: b.Spec.Size} })
	for _, o := range incompletePolicies(t, manifests.Installation{Name: "former", Namespace: namespace}, converter) {
		object := &unstructured.Unstructured{Object: o}
		if _, err := kube.Apply(t.Context(), client.WithFieldManager("test"), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Delete(context.Background(), object) }) // a further test would not notice it
	}
	var reconciled, cleaned names
	yaretest.RunParts(t, cluster, converter,
		controller.New(func(_ context.Context, l *former2, _ *kube.Client) (controller.Action, error) {
			reconciled.add(l.Name)
			return controller.Action{}, nil
		}).Finalizer(finalizer, func(_ context.Context, l *former2, _ *kube.Client) (controller.Cleanup, error) {
			cleaned.add(l.Name)
			return controller.CleanupDone(), nil
		}))
	for _, api := range []kube.API[unstructured.Unstructured]{v1, v2} {
		if all, err := api.List(t.Context()); err != nil || len(all) != len(stored) {
			t.Fatalf("%s: %d of %d objects, %v", api.Resource().Version, len(all), len(stored), err)
		}
	}
	label := kube.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "blue"}}})
	for name := range stored {
		before, err := v1.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var patched error
		yaretest.Eventually(t, func() error { // the server reads policies a moment later
			_, patched = v2.Patch(t.Context(), name, label)
			if isIncomplete[name] && patched == nil {
				return errors.New("an incomplete object was written")
			}
			return nil
		})
		after, err := v1.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if isIncomplete[name] {
			if !kube.IsInvalid(patched) || after.GetResourceVersion() != before.GetResourceVersion() && after.GetLabels()["team"] != "" {
				t.Errorf("%s was written: %v", name, patched)
			}
			if _, err := v2.Apply(t.Context(), newObject(name, map[string]any{"hue": "green"})); !kube.IsInvalid(err) {
				t.Errorf("%s was applied: %v", name, err)
			}
			if _, err := v2.Patch(t.Context(), name, kube.MergePatch(map[string]any{"spec": map[string]any{"size": int64(3)}})); !kube.IsInvalid(err) {
				t.Errorf("%s was changed: %v", name, err)
			}
			if now, err := v1.Get(t.Context(), name); err != nil || specOf(now) != specOf(before) {
				t.Errorf("%s has changed, %v", name, err)
			}
			continue
		}
		if patched != nil {
			t.Errorf("a label of %s: %v", name, patched)
			continue
		}
		// What fits is in its place. What does not fit is kept.
		spec, _ := after.Object["spec"].(map[string]any)
		kept := strings.Join(slices.Collect(maps.Values(after.GetAnnotations())), "\n")
		for field, value := range stored[name] {
			text, err := kube.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if now, isThere := spec[field]; fmt.Sprint(now) != fmt.Sprint(value) && !strings.Contains(kept, `"original":`+string(text)) && (isThere || value != nil) {
				t.Errorf("%s: %s was %v, and is %v in %v with the annotation %s", name, field, value, now, spec, kept)
			}
		}
	}
	for name := range stored {
		if err := v1.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for name := range stored {
		if isIncomplete[name] {
			continue
		}
		yaretest.Eventually(t, func() error {
			if !cleaned.has(name) {
				return fmt.Errorf("%s is not cleaned up", name)
			}
			return nil
		})
	}
	for name := range isIncomplete {
		if o, err := v1.Get(t.Context(), name); err != nil || cleaned.has(name) || reconciled.has(name) || !slices.Contains(o.GetFinalizers(), finalizer) {
			t.Errorf("%s: cleaned up %t, reconciled %t, %v", name, cleaned.has(name), reconciled.has(name), err)
		}
		// The object is mended in its own version, and then goes.
		if _, err := v1.Patch(t.Context(), name, kube.MergePatch(map[string]any{"spec": map[string]any{"colour": "red", "note": nil}})); err != nil {
			t.Errorf("%s cannot be mended: %v", name, err)
		}
		yaretest.Eventually(t, func() error {
			if _, err := v1.Get(t.Context(), name); !kube.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %w", name, err)
			}
			return nil
		})
	}
}

// The schedule and the tier of row 10 are expressible in v1 only. The tier never changes by the rule of v1.
type (
	forgedSpec1 struct {
		Schedule string `json:"schedule" crd:"pattern='^(@hourly|[0-9]+)$'"`
		Tier     string `json:"tier,omitempty" crd:"enum=silver|gold,rule='self == oldSelf'"`
		Limit    int    `json:"limit,omitempty" crd:"minimum=1,maximum=9"`
	}
	forgedSpec2 struct {
		Minute string `json:"minute,omitempty" crd:"pattern='^[0-9]+$'"`
	}
	forged1 = kube.CustomResource[forgedSpec1, kube.None]
	forged2 = kube.CustomResource[forgedSpec2, kube.None]
)

func (forgedSpec1) Definition() kube.Definition {
	return lampDefinition("forged.versions.example.com", "v1", true)
}

func (forgedSpec2) Definition() kube.Definition {
	return lampDefinition("forged.versions.example.com", "v2", false)
}

// Row 10: users forge the annotation, remove it, and put an old one back. No invalid value comes home, every list succeeds,
// and the rest is what the guide says.
func TestForgedAnnotations(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[forged1](t), typeOf[forged2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	v1, v2 := kube.Dynamic(client, typeOf[forged1](t).Resource, namespace), kube.Dynamic(client, typeOf[forged2](t).Resource, namespace)
	yaretest.RunParts(t, cluster, conversion.Between(func(a *forged1, b *forged2) {
		if a.Spec.Schedule != "@hourly" {
			b.Spec.Minute = a.Spec.Schedule
		}
	}, func(b *forged2, a *forged1) {
		if a.Spec.Schedule = b.Spec.Minute; a.Spec.Schedule == "" {
			a.Spec.Schedule = "0"
		}
	}))
	home := map[string]any{"schedule": "@hourly", "tier": "silver", "limit": int64(5)}
	const whole = "map[limit:5 schedule:@hourly tier:silver]"
	// with returns a function that changes the annotation that keeps a field.
	with := func(field string, change func(old string) any) func(annotations map[string]string) map[string]any {
		return func(annotations map[string]string) map[string]any {
			for key, old := range annotations {
				if strings.Contains(old, `"path":["spec","`+field+`"]`) {
					return map[string]any{key: change(old)}
				}
			}
			return map[string]any{"no annotation keeps " + field: ""}
		}
	}
	replace := func(old, replacement string) func(string) any {
		return func(text string) any { return strings.Replace(text, old, replacement, 1) }
	}
	const noLimit, noTier, noSchedule = "map[schedule:@hourly tier:silver]", "map[limit:5 schedule:@hourly]", "map[limit:5 schedule:0 tier:silver]"
	for name, c := range map[string]struct {
		forge func(annotations map[string]string) map[string]any
		want  string // the spec at home
	}{
		"nothing": {func(map[string]string) map[string]any { return map[string]any{} }, whole},
		"removed": {func(annotations map[string]string) map[string]any {
			all := make(map[string]any)
			for key := range annotations {
				all[key] = nil
			}
			return all
		}, "map[schedule:0]"},
		"a wrong type": {with("limit", replace(`"original":5`, `"original":"many"`)), noLimit},
		"too large":    {with("limit", replace(`"original":5`, `"original":10`)), noLimit},
		"no enum":      {with("tier", replace("silver", "bronze")), noTier},
		"an unknown field": {func(map[string]string) map[string]any {
			return map[string]any{"versions.yare.dev/v1.0123456789abcdef": `{"from":2,"original":"me","path":["spec","owner"],"to":"v2"}`}
		}, whole},
		"another immutable": {with("tier", replace("silver", "gold")), strings.Replace(whole, "silver", "gold", 1)},
		"bad JSON":          {with("schedule", func(old string) any { return old[:len(old)-1] }), noSchedule},
		"a list":            {with("schedule", func(string) any { return "[1]" }), noSchedule},
		"a deep value":      {with("limit", replace(`"original":5`, `"original":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000))), noLimit},
		"an old one":        {with("limit", replace(`"original":5`, `"original":3`)), strings.Replace(whole, "5", "3", 1)},
		"a megabyte":        {with("limit", func(string) any { return strings.Repeat("x", 1<<20) }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := strings.ReplaceAll(name, " ", "-")
			object = strings.ToLower(object)
			if _, err := v1.Create(t.Context(), newObject(object, home)); err != nil {
				t.Fatal(err)
			}
			seen, err := v2.Get(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			patch := map[string]any{"metadata": map[string]any{"annotations": c.forge(seen.GetAnnotations()), "labels": map[string]any{"team": "blue"}}}
			_, err = v2.Patch(t.Context(), object, kube.MergePatch(patch))
			if c.want == "" {
				if !kube.IsInvalid(err) {
					t.Errorf("it was accepted: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o, err := v1.Get(t.Context(), object)
			if err != nil || specOf(o) != c.want {
				t.Fatalf("at home it is %v, %v, want %s", o.Object, err, c.want)
			}
			fresh := newObject("fresh-"+object, o.Object["spec"].(map[string]any))
			if _, err := v1.Create(t.Context(), fresh, kube.DryRun()); err != nil {
				t.Errorf("the object at home is not valid: %v", err)
			}
			for _, api := range []kube.API[unstructured.Unstructured]{v1, v2} {
				if _, err := api.List(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Guarded lamps have a tier in v1 only. A validator in v1 refuses one.
type (
	guardedSpec1 struct {
		Tier string `json:"tier,omitempty" crd:"enum=silver|gold"`
	}
	guardedSpec2 struct {
		Minute string `json:"minute,omitempty"`
	}
	guarded1 = kube.CustomResource[guardedSpec1, kube.None]
	guarded2 = kube.CustomResource[guardedSpec2, kube.None]
)

func (guardedSpec1) Definition() kube.Definition {
	return lampDefinition("guarded.versions.example.com", "v1", true)
}

func (guardedSpec2) Definition() kube.Definition {
	return lampDefinition("guarded.versions.example.com", "v2", false)
}

// A validator sees an object with the values that a conversion puts back. So a user of v2 who forges the annotation cannot set in v1
// what the validator of v1 refuses.
func TestValidatorsSeeWhatAConversionPutsBack(t *testing.T) {
	t.Parallel()
	cluster := yaretest.Shared(t)
	cluster.Define(t, typeOf[guarded1](t), typeOf[guarded2](t))
	namespace, client := cluster.Namespace(t), cluster.Client(t)
	v1, v2 := kube.Dynamic(client, typeOf[guarded1](t).Resource, namespace), kube.Dynamic(client, typeOf[guarded2](t).Resource, namespace)
	yaretest.RunParts(t, cluster, conversion.Between(func(*guarded1, *guarded2) {}, func(*guarded2, *guarded1) {}),
		webhook.Validate(func(_ context.Context, _, after *guarded1, _ *kube.Client) error {
			if after.Spec.Tier == "gold" {
				return errors.New("nobody gets gold")
			}
			return nil
		}))
	if _, err := v1.Create(t.Context(), newObject("one", map[string]any{"tier": "silver"})); err != nil {
		t.Fatal(err)
	}
	seen, err := v2.Get(t.Context(), "one")
	if err != nil || len(seen.GetAnnotations()) != 1 {
		t.Fatalf("in v2 it is %v, %v", seen.Object, err)
	}
	for key, kept := range seen.GetAnnotations() {
		forge := func(value string) error {
			annotations := map[string]any{key: strings.Replace(kept, "silver", value, 1)}
			_, err := v2.Patch(t.Context(), "one", kube.MergePatch(map[string]any{"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{"set": value}}}))
			return err
		}
		if err := forge("gold"); err == nil || !strings.Contains(err.Error(), "nobody gets gold") {
			t.Errorf("a forged annotation: %v", err)
		}
		if err := forge("silver"); err != nil {
			t.Errorf("the annotation as it was: %v", err)
		}
	}
	if home, err := v1.Get(t.Context(), "one"); err != nil || specOf(home) != "map[tier:silver]" || home.GetLabels()["set"] != "silver" {
		t.Errorf("at home it is %v, %v", home.Object, err)
	}
}
