package faults_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// TestEachKindHasAFamily checks that each constant of type Kind belongs to one family.
func TestEachKindHasAFamily(t *testing.T) {
	t.Parallel()
	families := make(map[faults.Kind]int)
	for _, f := range faults.Families() {
		d := f.Describe()
		for _, k := range slices.Concat(d.Kinds, d.OptIn) {
			families[k]++
		}
	}
	for k := range declaredKinds(t) {
		if families[k] != 1 {
			t.Errorf("the kind %s belongs to %d families", k, families[k])
		}
		delete(families, k)
	}
	for k := range families {
		t.Errorf("the kind %s of a family is no constant", k)
	}
}

// declaredKinds returns the constants of type Kind.
func declaredKinds(t *testing.T) map[faults.Kind]bool {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[faults.Kind]bool)
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Kind" {
				text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds[faults.Kind(text)] = true
			}
			return true
		})
	}
	return kinds
}

func TestParseKinds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]faults.Kind{
		"plane":            {faults.ServerKilled, faults.EtcdKilled, faults.EtcdPaused},
		"watch":            {faults.WatchLag, faults.WatchCut, faults.WatchExpired, faults.WatchMissed},
		"crash":            {faults.Crash},
		"transition":       {faults.Transition},
		"user":             {faults.ObjectChange, faults.SimilarNames},
		"cluster":          {faults.JobExpired, faults.PodEvicted, faults.QuotaFull},
		"tools":            {faults.GitOps, faults.KubectlApply},
		"foreign-edit":     {faults.ForeignEdit},
		"strip-finalizers": {faults.StripFinalizers},
		"restored":         {faults.Restored},
	} {
		if got, err := faults.ParseKinds(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s stands for %v, %v, want %v", name, got, err, want)
		}
	}
	// The empty name stood for the first family whose group has no name.
	if got, err := faults.ParseKinds(""); err == nil {
		t.Errorf("the empty name stands for %v", got)
	}
	_, err := faults.ParseKinds("crashes")
	if err == nil {
		t.Fatal("an unknown kind is accepted")
	}
	for _, want := range append(faults.Groups(), `"crashes"`, "watch-twice") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s: %v", want, err)
		}
	}
	for _, k := range []faults.Kind{faults.WatchTwice, faults.ForeignRecreate, faults.Unreadable, faults.Restored, faults.EtcdPaused} {
		if slices.Contains(faults.DefaultKinds(), k) {
			t.Errorf("%s happens by default", k)
		}
	}
}

// An impossible fault is not planned, such as a conflict at an apply that creates the object.
func TestFaultsThatCannotHappenAreNotPlanned(t *testing.T) {
	t.Parallel()
	patch := proxy.Point{Verb: "patch", Resource: "configmaps", Name: "page"}
	for _, test := range []struct {
		kind  faults.Kind
		point proxy.Point
		code  int
		want  bool
	}{
		{faults.Conflict, patch, http.StatusOK, true},
		{faults.Conflict, patch, http.StatusConflict, true},
		{faults.Conflict, patch, http.StatusCreated, false},
		{faults.Conflict, proxy.Point{Verb: "delete", Resource: "configmaps", Name: "page"}, http.StatusOK, true},
		{faults.Conflict, proxy.Point{Verb: "delete", Resource: "configmaps", Name: "page"}, http.StatusNotFound, false},
		{faults.Conflict, proxy.Point{Verb: "deletecollection", Resource: "configmaps"}, http.StatusOK, false},
		{faults.Conflict, proxy.Point{Verb: "create", Resource: "configmaps", Name: "page"}, http.StatusConflict, false},
		{faults.Conflict, proxy.Point{Verb: "get", Resource: "configmaps", Name: "page"}, http.StatusOK, false},
		{faults.CommittedReset, patch, http.StatusCreated, true},
		{faults.CommittedReset, proxy.Point{Verb: "get"}, http.StatusOK, false},
		{faults.Refused429, proxy.Point{Verb: "get"}, http.StatusOK, true},
	} {
		if got := faults.CanHappenAt(test.kind, test.point, test.code); got != test.want {
			t.Errorf("%s of %s, which was answered with %d: %t, want %t", test.kind, test.point, test.code, got, test.want)
		}
	}
}

func TestForeignFaultsThatChangeNothingAreNotPlanned(t *testing.T) {
	t.Parallel()
	isPlanned := func(k faults.Kind, o faults.WrittenObject) bool {
		return len(planned(t, &faults.PlanInput{Kinds: []faults.Kind{k}, Objects: []faults.WrittenObject{o}})) == 1
	}
	bare := faults.WrittenObject{Content: map[string]any{"metadata": map[string]any{"name": "page"}}}
	full := faults.WrittenObject{Edit: []byte("{}"), Content: map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"a": "b"}, "finalizers": []any{"f"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}},
	}}}
	for kind, wantOfBare := range map[faults.Kind]bool{
		faults.ForeignEdit: false, faults.StripLabels: false, faults.StripOwners: false, faults.StripFinalizers: false,
		faults.ForeignDelete: true, faults.ForeignRecreate: true,
	} {
		if got := isPlanned(kind, bare); got != wantOfBare {
			t.Errorf("%s of a bare object: %t, want %t", kind, got, wantOfBare)
		}
		if !isPlanned(kind, full) {
			t.Errorf("%s of an object with labels, owners and finalizers is not planned", kind)
		}
	}
}

// What a cluster does by itself is planned for programs that have such objects.
func TestClusterChanges(t *testing.T) {
	t.Parallel()
	point := proxy.Point{Verb: "create", Resource: "jobs.batch", Name: "page", Occurrence: 1}
	object := func(resource string, spec map[string]any) faults.WrittenObject {
		return faults.WrittenObject{Object: faults.Object{Resource: resource, Name: "page"}, Content: map[string]any{"spec": spec}}
	}
	runs, reasons := planAll(t, &faults.PlanInput{
		Kinds: []faults.Kind{faults.JobExpired, faults.PodEvicted, faults.QuotaFull}, Points: []proxy.Point{point},
		Codes: map[proxy.Point]int{point: http.StatusCreated}, Steps: []faults.Step{{}},
		Objects: []faults.WrittenObject{object("jobs.batch", map[string]any{"ttlSecondsAfterFinished": int64(60)}), object("pods", nil)},
	})
	var got []string
	for _, run := range runs {
		got = append(got, run[0].String())
	}
	want := []string{"job-expired after step 1", "pod-evicted of pods/page after step 1", "quota-full after step 1"}
	if !slices.Equal(got, want) || len(reasons) > 0 {
		t.Errorf("the plan is %q, not applicable: %v, want %q", got, reasons, want)
	}
	// A Job without a time to live stays until somebody deletes it, who may want it to run again.
	_, reasons = planAll(t, &faults.PlanInput{Kinds: []faults.Kind{faults.JobExpired}, Objects: []faults.WrittenObject{object("jobs.batch", nil)}})
	if reasons[faults.JobExpired] == "" {
		t.Error("a Job without a time to live expires")
	}
}

// planned returns the runs that all families plan.
func planned(t *testing.T, in *faults.PlanInput) [][]faults.Fault {
	t.Helper()
	runs, _ := planAll(t, in)
	return runs
}

// planAll returns the runs that all families plan, and why kinds cannot happen.
func planAll(t *testing.T, in *faults.PlanInput) (runs [][]faults.Fault, notApplicable map[faults.Kind]string) {
	t.Helper()
	notApplicable = make(map[faults.Kind]string)
	in.Random = rand.New(rand.NewPCG(1, 1))
	for _, f := range faults.Families() {
		plan, err := f.Plan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, plan.Runs...)
		for kind, reason := range plan.NotApplicable {
			notApplicable[kind] = reason
		}
	}
	return runs, notApplicable
}

// TestPlan checks the plan for references with a write and a read in the first of two steps.
func TestPlan(t *testing.T) {
	t.Parallel()
	write := proxy.Point{Verb: "patch", Resource: "configmaps", Name: "page", Occurrence: 1}
	read := proxy.Point{Verb: "get", Resource: "configmaps", Name: "page", Occurrence: 1}
	references := func() *faults.PlanInput {
		return &faults.PlanInput{
			Kinds: faults.DefaultKinds(), Points: []proxy.Point{write, read}, Codes: map[proxy.Point]int{write: 200, read: 200},
			Steps: []faults.Step{{Streams: []string{"configmaps"}, CanRestartLater: true}, {}},
		}
	}
	var got []string
	for _, run := range planned(t, references()) {
		for _, f := range run {
			if group := faults.FamilyOf(f.Kind).Describe().Group; group != "request" && group != "denied" { // see TestRotation
				got = append(got, f.String())
			}
		}
	}
	const at = "patch configmaps page (step 1, occurrence 1)"
	want := []string{
		"idle after step 1", "idle after step 2",
		"crash at " + at + ", restart at once", "crash at " + at + ", restart at rest", "crash at " + at + ", restart after the next step",
		"crash after the last write of step 1, restart at once", "crash after the last write of step 1, restart after the next step",
		"crash after the last write of step 2, restart at once",
		"watch-lag of configmaps in step 1", "watch-cut of configmaps in step 1", "watch-expired of configmaps in step 1",
		"watch-missed of configmaps in step 1",
		"stale after step 1: the program starts again, and its lists of version 0 show the state before the step",
		"stale after step 2: the program starts again, and its lists of version 0 show the state before the step",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plan is\n%q, want\n%q", got, want)
	}
	_, reasons := planAll(t, references())
	inapplicable := []faults.Kind{"leader", faults.JobExpired, faults.PodEvicted, faults.QuotaFull, "outside", faults.StrangerField, faults.StrangerItem, faults.StrangerMetadata, "webhooks", "conversion", faults.Reread}
	for _, k := range inapplicable {
		if reasons[k] == "" || len(reasons) != len(inapplicable) {
			t.Errorf("not applicable: %v", reasons)
		}
	}
	r := references()
	r.Kinds, r.IsElecting, r.CanStopComponents = []faults.Kind{faults.LeaderCut, faults.EtcdPaused, faults.Restored}, true, true
	count := make(map[faults.Kind]int)
	for _, run := range planned(t, r) {
		count[run[0].Kind]++
	}
	if count[faults.LeaderCut] != 1 || count[faults.EtcdPaused] != 3 || count[faults.Restored] != 2 || len(count) != 3 {
		t.Errorf("the plan has %v", count)
	}
}

// Each kind of fault of webhooks has a run, if the program publishes webhooks.
func TestPlanOfWebhooks(t *testing.T) {
	t.Parallel()
	in := &faults.PlanInput{Kinds: faults.DefaultKinds(), Steps: []faults.Step{{}, {}}, SampleContents: []json.RawMessage{[]byte(`{}`)}, HasWebhooks: true}
	count := make(map[faults.Kind]int)
	for _, run := range planned(t, in) {
		count[run[0].Kind]++
	}
	for _, k := range []faults.Kind{faults.WebhookDown, faults.WebhookFailing, faults.WebhookUntrusted, faults.WebhookSlow, faults.WebhookTwice} {
		if count[k] != 1 {
			t.Errorf("the kind %s has %d runs", k, count[k])
		}
	}
}

// TestPlanOfStrangers checks that a run of each kind adds to all objects, makes the program reconcile, and removes the
// stranger's finalizers in the step that deletes the samples.
func TestPlanOfStrangers(t *testing.T) {
	t.Parallel()
	workload := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web"}}}}}}
	in := &faults.PlanInput{
		Kinds: []faults.Kind{faults.StrangerMetadata, faults.StrangerItem, faults.StrangerField},
		Steps: []faults.Step{{}, {HasDeletion: true}}, SampleObjects: []faults.Object{{Resource: "sites.example.com", Name: "web"}},
		Objects: []faults.WrittenObject{
			{Object: faults.Object{Resource: "deployments.apps", Name: "web"}, Content: workload},
			{Object: faults.Object{Resource: "configmaps", Name: "page"}, Content: map[string]any{}},
		},
	}
	var got []string
	for _, run := range planned(t, in) {
		for _, f := range run {
			got = append(got, f.String())
		}
	}
	const reconcile = ": the user's objects are touched, and the program starts again"
	want := []string{
		"stranger-metadata at deployments.apps/web after step 1", "stranger-metadata at configmaps/page after step 1",
		"stranger-metadata at sites.example.com/web after step 1", "stranger-metadata" + reconcile,
		"stranger-metadata: its finalizers are removed after step 2",
		"stranger-item at deployments.apps/web after step 1", "stranger-item" + reconcile,
		"stranger-field at deployments.apps/web after step 1", "stranger-field" + reconcile,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plan is\n%q, want\n%q", got, want)
	}
}

// Regression: the rotation of kinds began with the same kind for each seed, so that a program with one write never saw a
// conflict, and an exploration of conflicts only made none.
func TestRotation(t *testing.T) {
	t.Parallel()
	write := proxy.Point{Verb: "update", Resource: "configmaps", Name: "page", ChangeHash: "a", Occurrence: 1}
	read := proxy.Point{Verb: "get", Resource: "configmaps", Name: "page", Occurrence: 1}
	plan := func(seed uint64, in faults.PlanInput, group string) faults.Plan {
		in.Random, in.Codes = rand.New(rand.NewPCG(seed, 1)), map[proxy.Point]int{write: 200, read: 200}
		if in.Points == nil {
			in.Points = []proxy.Point{write}
		}
		for _, family := range faults.Families() {
			if family.Describe().Group == group {
				p, err := family.Plan(t.Context(), &in)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
		}
		t.Fatalf("there is no group %s", group)
		return faults.Plan{}
	}
	first := make(map[faults.Kind]bool)
	for seed := range uint64(20) {
		kinds := make(map[faults.Kind]bool)
		p := plan(seed, faults.PlanInput{Kinds: faults.DefaultKinds(), Points: []proxy.Point{write, read}}, "request")
		for _, run := range p.Runs {
			kinds[run[0].Kind] = true
		}
		for _, k := range faults.FamilyOf(faults.Conflict).Describe().Kinds {
			if !kinds[k] {
				t.Errorf("seed %d: no run has the kind %s", seed, k)
			}
		}
		first[p.Runs[0][0].Kind] = true
		// Each pair of a kind and a request that can happen is planned, or waits for the rest of a budget.
		const ofWrite, ofRead = 9, 5
		if count := len(p.Runs) + len(p.MoreRuns); count != ofWrite+ofRead {
			t.Errorf("seed %d: %d pairs of a kind and a request, want %d", seed, count, ofWrite+ofRead)
		}
	}
	if len(first) < 4 {
		t.Errorf("of 20 seeds the first kinds are %v", first)
	}
	for kind, group := range map[faults.Kind]string{faults.Conflict: "request", faults.DeniedConflict: "denied"} {
		p := plan(1, faults.PlanInput{Kinds: []faults.Kind{kind}}, group)
		if len(p.Runs) != 1 || p.Runs[0][0].Kind != kind {
			t.Errorf("with the kind %s alone the runs are %v", kind, p.Runs)
		}
	}
	all := plan(1, faults.PlanInput{Kinds: faults.DefaultKinds(), IsExhaustive: true}, "request")
	if len(all.Runs) != 9 || len(all.MoreRuns) != 0 {
		t.Errorf("an exhaustive plan of one write has %d runs, and %d more", len(all.Runs), len(all.MoreRuns))
	}
}

// Faults of the connections to an external system are planned in the steps in which data has passed.
func TestPlanOfExternalSystem(t *testing.T) {
	t.Parallel()
	kinds := faults.FamilyOf(faults.OutsideCut).Describe().Kinds
	in := &faults.PlanInput{Kinds: kinds, HasExternalSystem: true, Steps: []faults.Step{{ExternalParts: 7}, {}, {ExternalParts: 1}}}
	count := make(map[int]int)
	for _, run := range planned(t, in) {
		if f := run[0]; f.Part < 1 || f.Part > in.Steps[f.Step].ExternalParts {
			t.Errorf("%s is planned", f)
		}
		count[run[0].Step]++
	}
	if count[0] != 2*len(kinds) || count[1] != 0 || count[2] != len(kinds) {
		t.Errorf("the runs of the steps are %v", count)
	}
}

// The samples had a Secret, and the program makes a Secret. The full quota refused the Secret of the user, so that the run could
// not be made.
func TestFullQuotaSparesTheUser(t *testing.T) {
	t.Parallel()
	pointOf := func(resource string) proxy.Point {
		return proxy.Point{Verb: "create", Resource: resource, Name: "a", Occurrence: 1}
	}
	planned := func(resources ...string) faults.Plan {
		in := &faults.PlanInput{
			Kinds: []faults.Kind{faults.QuotaFull}, Steps: make([]faults.Step, 1), Codes: map[proxy.Point]int{},
			SampleObjects: []faults.Object{{Resource: "secrets", Name: "password"}}, Random: rand.New(rand.NewPCG(0, 0)),
		}
		for _, resource := range resources {
			in.Points = append(in.Points, pointOf(resource))
			in.Codes[pointOf(resource)] = http.StatusCreated
		}
		plan, err := faults.FamilyOf(faults.QuotaFull).Plan(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	if plan := planned("secrets"); len(plan.Runs) > 0 || plan.NotApplicable[faults.QuotaFull] == "" {
		t.Errorf("a program that makes only Secrets has the plan %+v", plan)
	}
	plan := planned("secrets", "configmaps")
	if len(plan.Runs) != 1 || !slices.Equal(plan.Runs[0][0].Resources, []string{"configmaps"}) {
		t.Errorf("a program that makes Secrets and ConfigMaps has the plan %+v", plan)
	}
}
