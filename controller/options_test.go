package controller_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// A mistake in the declaration of a controller is an error before any request. The error text contains the
// remedy.
func TestMistakes(t *testing.T) {
	t.Parallel()
	reconcile := recordingNames(new(journal))
	cleanup := cleaning(reconcile)
	build := func(options ...controller.Option) *controller.Controller[Garden] {
		return controller.New(reconcile, options...)
	}
	var nobody func(*Plant) []kube.Key
	for name, test := range map[string]struct {
		controller part
		want       []string
	}{
		"no reconcile": {controller.New[Garden](nil), []string{"reconcile function is nil", "give controller.New one"}},
		"unknown type": {controller.New(func(context.Context, *metav1.PartialObjectMetadata, *kube.Client) (controller.Action, error) {
			panic("never")
		}), []string{"PartialObjectMetadata", "controller.Kind", "controller.Reconciled"}},
		"unknown owned type":                  {build(controller.Owns[metav1.PartialObjectMetadata]()), []string{"PartialObjectMetadata", "controller.Kind"}},
		"no names":                            {build(watches(nobody)), []string{"plants", "is nil", "give one"}},
		"no names of metadata":                {build(controller.Watches[metav1.PartialObjectMetadata](nil, controller.Kind(resourceOf[Plant](t)))), []string{"plants", "is nil"}},
		"resource":                            {build(watchesMetadata(wire.Resource{}, func(*metav1.PartialObjectMetadata) []kube.Key { return nil })), []string{"not complete", "Plural"}},
		"selector of a source":                {build(controller.Owns[Plant](controller.Select(kube.ParseLabels("a=b=c")))), []string{"a=b=c"}},
		"selector":                            {build(controller.Reconciled(controller.Select(kube.ParseFields("no field")))), []string{"field selector"}},
		"index of another":                    {build(controller.Reconciled(controller.Index(kube.NewIndex("x", func(*Plant) []string { return nil })))), []string{`index "x"`, "of plants", "not of gardens"}},
		"index of metadata":                   {build(watchesMetadata(resourceOf[Plant](t), func(*metav1.PartialObjectMetadata) []kube.Key { return nil }, controller.Index(kube.NewIndex("x", func(*Plant) []string { return nil })))), []string{`index "x"`, "whole objects", "plants"}},
		"kind of a typed source":              {build(controller.Owns[Plant](controller.Kind(resourceOf[Garden](t)))), []string{"names gardens", "PlantSpec", "leave controller.Kind out"}},
		"kind of a typed controller":          {build(controller.Reconciled(controller.Kind(resourceOf[Garden](t)))), []string{"names gardens", "GardenSpec"}},
		"kind of an untyped controller":       {controller.New(doNothing[unstructured.Unstructured], controller.Reconciled(controller.Kind(wire.Resource{Plural: "things"}))), []string{"things", "not complete"}},
		"no references":                       {build(controller.WatchesReferenced[Plant](nil)), []string{"refers to plants", "kube.NewIndex"}},
		"references of others":                {build(controller.WatchesReferenced[Plant](kube.NewIndex("x", func(*Plant) []string { return nil }))), []string{`index "x"`, "not of gardens"}},
		"predicate":                           {build(controller.Reconciled(controller.When(nil))), []string{"predicate is nil", "leave it out"}},
		"option of a watched kind":            {build(controller.Owns[Plant](nil)), []string{"an option of a watched kind is nil"}},
		"option":                              {build(nil), []string{"option 1", "nil"}},
		"any owner of a watched kind":         {build(watches(gardenOf, controller.AnyOwner())), []string{"controller.AnyOwner", "controller.Owns"}},
		"any owner of the reconciled kind":    {build(controller.Reconciled(controller.AnyOwner())), []string{"controller.AnyOwner"}},
		"no namespaces":                       {build(controller.Owns[Plant](controller.InNamespaces())), []string{"no namespaces"}},
		"namespaces of a cluster-scoped kind": {build(watches(func(*Country) []kube.Key { return nil }, controller.InOwnNamespace())), []string{"countries", "outside of namespaces"}},
		"owner label":                         {build(controller.OwnsByLabel[Plant]("not valid")), []string{"not valid", "controller.OwnsByLabel"}},
		"condition":                           {build().Finalizer("a.example.com/a", cleanup).FinalizerWhen(nil), []string{"condition", "leave FinalizerWhen out"}},
		"condition without a finalizer":       {build().FinalizerWhen(func(*Garden) bool { return true }), []string{"FinalizerWhen has no finalizer"}},
		"gone":                                {build(controller.OnGone(nil)), []string{"leave controller.OnGone out"}},
		"debounce":                            {build(controller.Debounce(0)), []string{"quiet time 0s", "leave it out"}},
		"pause":                               {build(controller.Paused("not valid")), []string{"not valid", "controller.Paused"}},
		"concurrency":                         {build(controller.Concurrency(0)), []string{"concurrency 0", "1 is one object"}},
		"grace":                               {build(controller.ShutdownGrace(-time.Second)), []string{"-1s", "0 ends calls at once"}},
		"results":                             {build(controller.OnResult(nil)), []string{"leave controller.OnResult out"}},
		"source":                              {build(controller.From(nil)), []string{"function of controller.From is nil", "emits triggers"}},
		"interval":                            {build(controller.Every(0)), []string{"interval 0s", "controller.Every(time.Hour)"}},
		"channel":                             {build(controller.Channel(nil)), []string{"channel of controller.Channel is nil"}},
		"finalizer":                           {build().Finalizer("a/b/c", cleanup), []string{`"a/b/c"`, "garden.example.com/cleanup"}},
		"finalizer of a built-in kind":        {controller.New(doNothing[corev1.Pod]).Finalizer("cleanup", cleaning(doNothing[corev1.Pod])), []string{`"cleanup"`, "pod.example.com/cleanup"}},
		"former finalizer in use":             {build().Finalizer("a.example.com/a", cleanup).FormerFinalizers("a.example.com/a"), []string{"a.example.com/a", "FormerFinalizers"}},
		"former and retired finalizer":        {build().Finalizer("a.example.com/a", cleanup).FormerFinalizers("b").RetiredFinalizers("b"), []string{`"b"`, "FormerFinalizers"}},
		"former finalizer without a cleanup":  {build().FormerFinalizers("b"), []string{"RetiredFinalizers"}},
		"former finalizer that is not valid":  {build().Finalizer("a.example.com/a", cleanup).FormerFinalizers("a/b/c"), []string{`former finalizer "a/b/c"`}},
		"second finalizer":                    {build().Finalizer("a.example.com/a", cleanup).Finalizer("a.example.com/b", cleanup), []string{"a.example.com/a", "already"}},
		"no cleanup":                          {build().Finalizer("a.example.com/a", nil), []string{"cleanup function", "nil"}},
		"projection":                          {controller.New(reconcileNamed).Finalizer("a.example.com/a", cleaning(reconcileNamed)), []string{"projection", "whole type"}},
		"policy":                              {build().Backoff(nil), []string{"backoff policy is nil", "leave Backoff out"}},
		"field manager":                       {build(controller.FieldManager(strings.Repeat("x", 129))), []string{"field manager", "128"}},
		"permission":                          {build(controller.Permission{}), []string{"Permission is empty", "controller.Reads"}},
		"a write that reads":                  {build(controller.Writes[Plant](wire.VerbGet)), []string{"controller.Writes[", "PlantSpec", `"get" does not write`, "controller.Reads"}},
		"a read that writes":                  {build(controller.Reads[Plant](wire.VerbDelete)), []string{`"delete" does not read`, "controller.Writes"}},
		"no verbs":                            {build(controller.Writes[Plant]()), []string{"no verbs"}},
		"a wildcard":                          {build(controller.Writes[Plant]("*")), []string{"wildcard", "controller.Allow"}},
		"permission for any kind":             {build(controller.Reads[unstructured.Unstructured]()), []string{"controller.Reads[unstructured.Unstructured]", "any kind", "method Kind"}},
		"a kind of its own":                   {build(controller.Reads[Plant]().Kind(resourceOf[Garden](t))), []string{"leave Kind(gardens"}},
		"a kind that is not complete":         {build(controller.Reads[unstructured.Unstructured]().Kind(wire.Resource{})), []string{"not complete"}},
		"subresource":                         {build(controller.Reads[Plant]().Subresource("")), []string{`the subresource ""`}},
		"names of a permission":               {build(controller.Reads[Plant]().Named()), []string{"leave Named out"}},
		"names of a collection":               {build(controller.Writes[Plant](wire.VerbDeleteCollection).Named("a")), []string{"deletecollection has no name"}},
		"namespaces of a permission":          {build(controller.Reads[Plant]().InNamespaces("Not_Valid")), []string{`"Not_Valid"`}},
		"namespaces for a cluster-scoped":     {build(controller.Reads[corev1.Node]().InNamespaces("a")), []string{"nodes live outside of namespaces"}},
		"a rule without verbs":                {build(controller.Allow(kube.PolicyRule{NonResourceURLs: []string{"/x"}})), []string{"controller.Allow", "no verbs"}},
		"a rule without groups":               {build(controller.Allow(kube.PolicyRule{Verbs: []string{"get"}, Resources: []string{"pods"}})), []string{"APIGroups"}},
		"a rule for nothing":                  {build(controller.Allow(kube.PolicyRule{Verbs: []string{"get"}})), []string{"either Resources or NonResourceURLs"}},
		"a narrowed rule":                     {build(controller.Allow(kube.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}).InOwnNamespace()), []string{"InOwnNamespace", "write it into the rule"}},
		"writing of a watched kind":           {build(watches(gardenOf, controller.WriteVerbs())), []string{"controller.WriteVerbs", "controller.Writes"}},
		"writing of the reconciled kind":      {build(controller.Reconciled(controller.WriteVerbs(wire.VerbDelete))), []string{"controller.WriteVerbs"}},
		"writing that reads":                  {build(controller.Owns[Plant](controller.WriteVerbs(wire.VerbList))), []string{"controller.WriteVerbs", `"list" does not write`}},
		"ownership": {
			build(controller.Owns[corev1.Namespace]()),
			[]string{"namespaces outside", "cannot own", "controller.OwnsByLabel"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			caches := cache.New(s.client())
			defer caches.Close()
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what is no mistake ends at once
			err := test.controller.Start(ctx, &controller.Runtime{Client: s.client(), Cache: caches})
			if err == nil {
				t.Fatal("it is no error")
			}
			if _, needs := test.controller.Needs(); needs == nil || needs.Error() != err.Error() {
				t.Errorf("Needs says %v, Start %v", needs, err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q does not say %q", err, want)
				}
			}
			if len(s.Requests()) > 0 {
				t.Errorf("%d requests were made", len(s.Requests()))
			}
		})
	}
}

// What a controller needs is known before it is started.
func TestNeeds(t *testing.T) {
	t.Parallel()
	got, err := controller.New(recordingNames(new(journal)), controller.Owns[appsv1.Deployment]()).
		Finalizer(finalizer, cleaning(recordingNames(new(journal)))).Needs()
	if err != nil {
		t.Fatal(err)
	}
	read := []wire.Verb{wire.VerbGet, wire.VerbList, wire.VerbWatch}
	want := []kube.Access{
		{Resource: resourceOf[Garden](t), Verbs: append(read[:3:3], wire.VerbPatch)},
		{Resource: resourceOf[Garden](t), Subresource: "status", Verbs: []wire.Verb{wire.VerbPatch}},
		{Resource: resourceOf[appsv1.Deployment](t), Verbs: append(read[:3:3], wire.VerbCreate, wire.VerbPatch)},
		{Resource: resourceOf[Garden](t), Subresource: "finalizers", Verbs: []wire.Verb{wire.VerbUpdate}},
	}
	if diff := cmp.Diff(want, got.Access); diff != "" {
		t.Errorf("access (-want +got):\n%s", diff)
	}
	if len(got.Defines) != 1 || got.Defines[0].Resource.Kind != "Garden" {
		t.Errorf("it defines %v, want Garden", got.Defines)
	}
	if diff := cmp.Diff([][]string{{"garden"}, {"garden.test.example.com"}}, [][]string{got.Controllers, got.FieldManagers}); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	got, err = controller.New(recordingNames(new(journal)), controller.FormerFieldManagers("manager")).Needs()
	if err != nil {
		t.Fatal(err)
	}
	want = []kube.Access{ // the entry of the status moves by a patch of the object
		{Resource: resourceOf[Garden](t), Verbs: append(read[:3:3], wire.VerbPatch)},
		{Resource: resourceOf[Garden](t), Subresource: "status", Verbs: []wire.Verb{wire.VerbPatch}},
	}
	if diff := cmp.Diff(want, got.Access); diff != "" {
		t.Errorf("access with former field managers (-want +got):\n%s", diff)
	}
	got, err = controller.New(recordingNames(new(journal)), controller.Name("second"), controller.FieldManager("me")).Needs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"second"}, {"me"}}, [][]string{got.Controllers, got.FieldManagers}); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

type vendorA struct{}

func (vendorA) Definition() kube.Definition {
	return kube.Definition{Group: "a.example.com", Version: "v1", Kind: "Database"}
}

type vendorB struct{}

func (vendorB) Definition() kube.Definition {
	return kube.Definition{Group: "b.example.com", Version: "v1", Kind: "Database"}
}

// Regression: the controllers of two vendors' kinds of one name had the same field manager, so
// that each of them took the fields of the other for its own.
func TestFieldManagersOfKindsOfOneName(t *testing.T) {
	t.Parallel()
	check := func(want string, p part) {
		t.Helper()
		needs, err := p.Needs()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, needs.FieldManagers); diff != "" {
			t.Errorf("field managers (-want +got):\n%s", diff)
		}
	}
	a := func(context.Context, *kube.CustomResource[vendorA, kube.None], *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}
	b := func(context.Context, *kube.CustomResource[vendorB, kube.None], *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}
	check("database.a.example.com", controller.New(a))
	check("database.b.example.com", controller.New(b))
	check("database.a.example.com", controller.New(a, controller.Name("databases-of-a")))
	check("pod-operator", controller.New(func(context.Context, *corev1.Pod, *kube.Client) (controller.Action, error) {
		return controller.Done(), nil
	}))
}

// What mentions the reconciled type is checked by the compiler.
func TestFunctionsOfAnotherTypeDoNotCompile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles packages")
	}
	const program = `package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

func ofPod(context.Context, *corev1.Pod, *kube.Client) (controller.Action, error) { panic("") }

func cleanupOfPod(context.Context, *corev1.Pod, *kube.Client) (controller.Cleanup, error) { panic("") }

func cleanupOfDeployment(context.Context, *appsv1.Deployment, *kube.Client) (controller.Cleanup, error) { panic("") }

func policyOfDeployment(*appsv1.Deployment, error, int) time.Duration { panic("") }

var _ = `
	dir := t.TempDir()
	for name, test := range map[string]struct{ line, want string }{
		"all of one type":      {`controller.New(ofPod).Finalizer("a.example.com/b", cleanupOfPod)`, ""},
		"cleanup":              {`controller.New(ofPod).Finalizer("a.example.com/b", cleanupOfDeployment)`, "cannot use cleanupOfDeployment"},
		"reconcile as cleanup": {`controller.New(ofPod).Finalizer("a.example.com/b", ofPod)`, "cannot use ofPod"},
		"policy":               {`controller.New(ofPod).Backoff(policyOfDeployment)`, "cannot use policyOfDeployment"},
		"no object":            {`controller.Owns[corev1.PodSpec]()`, "does not satisfy"},
	} {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".go")
		if err := os.WriteFile(file, []byte(program+test.line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput()
		if text := string(out); (err == nil) != (test.want == "") && test.want != "" || !strings.Contains(text, test.want) {
			t.Errorf("%s: the compiler says %v:\n%s\nwant %q", name, err, text, test.want)
		}
		if test.want == "" && !strings.Contains(string(out), "function main is undeclared") && err != nil {
			t.Errorf("%s: %v:\n%s", name, err, out)
		}
	}
}

// namedGarden is a projection of Garden.
type namedGarden struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (namedGarden) Projection() (wire.Resource, error) { return kube.ResourceOf[Garden]() }

func reconcileNamed(context.Context, *namedGarden, *kube.Client) (controller.Action, error) {
	return controller.Done(), nil
}

// A controller can reconcile projections, and map them to what it reconciles.
func TestProjectionIsReconciled(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		var calls journal
		c := s.client()
		create(t, c, garden("eden"))
		create(t, c, plant("rose"))
		start(t, c, controller.New(func(_ context.Context, g *namedGarden, _ *kube.Client) (controller.Action, error) {
			calls.record(g.Name)
			return controller.Done(), nil
		}, watches(func(p *namedPlant) []kube.Key { return []kube.Key{{Namespace: "default", Name: "eden"}} })))
		time.Sleep(time.Minute)
		calls.drain()
		p := plant("rose")
		p.Spec.Height = 2
		apply(t, c, p)
		time.Sleep(time.Second)
		if got := calls.drain(); len(got) != 1 || got[0] != "eden" {
			t.Errorf("a change of a projected plant led to reconciles of %q", got)
		}
	})
}

// namedPlant is a projection of Plant.
type namedPlant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (namedPlant) Projection() (wire.Resource, error) { return kube.ResourceOf[Plant]() }

// Regression: the name of a controller was a part of its field manager. So a release that gave a controller a name left what the
// release before had applied in all children for ever.
func TestNameLeavesTheFieldManager(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *server) {
		c := s.client()
		create(t, c, garden("eden"))
		release := func(labels map[string]string, options ...controller.Option) {
			p := start(t, c, controller.New(func(ctx context.Context, g *Garden, c *kube.Client) (controller.Action, error) {
				rose := plant("rose")
				rose.Labels = labels
				_, err := kube.Apply(ctx, c, kube.OwnedBy(g, rose))
				return controller.Done(), err
			}, append(options, controller.Owns[Plant]())...))
			time.Sleep(time.Minute)
			p.stop()
		}
		release(map[string]string{"old": "1", "both": "1"})
		release(map[string]string{"both": "1"}, controller.Name("gardener"))
		labels, _ := meta(s.object("plants", "default", "rose"))["labels"].(object)
		if _, has := labels["old"]; has || len(labels) == 0 {
			t.Errorf("the labels are %v, want both alone", labels)
		}
	})
}
