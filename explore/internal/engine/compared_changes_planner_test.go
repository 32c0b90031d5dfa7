package engine

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube/wire"
)

const (
	siteSample     = `{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"web"},"spec":{"settings":"settings"}}`
	settingsSample = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"},"data":{"color":"blue","speed":"10"}}`
	passwordSample = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password"},"stringData":{"password":"secret"}}`
)

// newObjectChanges returns a planner of the changes of samples.
func newObjectChanges(samples ...string) *objectChangePlanner {
	var raw []json.RawMessage
	deletion := finding.Step{Name: "delete the samples"}
	c := &cluster{resources: []wire.Resource{
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"},
		{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Plural: "secrets"},
		{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}, Plural: "sites"},
	}}
	for _, sample := range samples {
		raw = append(raw, json.RawMessage(sample))
		object, err := c.objectOf(json.RawMessage(sample))
		if err != nil {
			panic(err)
		}
		deletion.Delete = append(deletion.Delete, object)
	}
	return &objectChangePlanner{
		settings: Settings{Seed: 1, Steps: []finding.Step{{Name: "apply the samples", Apply: raw}, deletion}},
		cluster:  c, results: newResults("operator", Settings{}), random: rand.New(rand.NewPCG(1, 1)),
	}
}

// namesOfSteps returns the names of the steps of a run after the first one.
func namesOfSteps(j job) (names []string) {
	for _, step := range j.schedule.Steps[1:] {
		names = append(names, step.Name)
	}
	return names
}

// Each object of the samples changes and goes, not only the objects of the operator's kinds. An object that others refer to
// comes late.
func TestEachObjectOfTheSamplesChanges(t *testing.T) {
	t.Parallel()
	p := newObjectChanges(settingsSample, siteSample)
	jobs, err := p.plan()
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 3 {
		t.Fatalf("there are %d runs, want one for each object, and one with late references", len(jobs))
	}
	names := namesOfSteps(jobs[0])
	for _, want := range []string{
		"configmaps/settings data.color has another value", "configmaps/settings data.speed has another value",
		"configmaps/settings: as in the sample", "configmaps/settings data.explored is added", "delete configmaps/settings", "make configmaps/settings again",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("the run lacks the step %q: %q", want, names)
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "is missing") }) {
		t.Errorf("no key is removed: %q", names)
	}
	if got, want := namesOfSteps(jobs[1]), []string{"delete sites.example.com/web", "make sites.example.com/web again"}; !slices.Equal(got, want) {
		t.Errorf("the steps of the Site are %q, want %q", got, want)
	}
	late := jobs[2].schedule.Steps
	if len(late) != 2 || late[0].Name != "apply sites.example.com/web" || !late[0].IsUncompared || late[1].Name != "apply configmaps/settings" || late[1].IsUncompared {
		t.Errorf("the run with late references is %+v", late)
	}
	if fields := p.results.snapshot().Coverage.Fields; fields != (finding.Count{Done: 2, Total: 2}) {
		t.Errorf("fields of the samples: %+v, want 2 of 2", fields)
	}
}

// An immutable object, and a Secret whose type requires keys, change only by a second sample.
func TestObjectsThatChangeOnlyByASecondSample(t *testing.T) {
	t.Parallel()
	immutable := strings.Replace(settingsSample, `"data"`, `"immutable":true,"data"`, 1)
	tls := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password"},"type":"kubernetes.io/tls","data":{"tls.crt":"","tls.key":""}}`
	p := newObjectChanges(immutable, tls, siteSample)
	p.settings.SecondSamples = []json.RawMessage{json.RawMessage(strings.Replace(immutable, "blue", "red", 1))}
	jobs, err := p.plan()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete configmaps/settings", "configmaps/settings of the second sample", "delete configmaps/settings", "make configmaps/settings again",
	}
	if got := namesOfSteps(jobs[0]); !slices.Equal(got, want) {
		t.Errorf("the steps are %q, want %q", got, want)
	}
	if got, want := namesOfSteps(jobs[1]), []string{"delete secrets/password", "make secrets/password again"}; !slices.Equal(got, want) {
		t.Errorf("the steps of the Secret are %q, want %q", got, want)
	}
	if reason := p.results.snapshot().Coverage.FieldsWithoutValues["Secret password data.tls.key"]; !strings.Contains(reason, "second sample") {
		t.Errorf("the coverage gives the reason %q for a key that keeps its value", reason)
	}
}

// A key that a user has applied as stringData would stay when the user leaves the key out.
func TestKeysOfSecretsAreRemoved(t *testing.T) {
	t.Parallel()
	p := newObjectChanges(passwordSample, siteSample)
	jobs, err := p.plan()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range jobs[0].schedule.Steps {
		for _, raw := range step.Apply {
			if strings.Contains(string(raw), "stringData") {
				t.Errorf("the step %q applies %s", step.Name, raw)
			}
		}
	}
	changed := string(jobs[0].schedule.Steps[1].Apply[0])
	if want := "c2VjcmV0eA=="; !strings.Contains(changed, want) { // secretx
		t.Errorf("the other value of the password is in %s, want %s", changed, want)
	}
}

// Samples are deleted one by one, in both orders.
func TestOrdersOfDeletion(t *testing.T) {
	t.Parallel()
	p := newObjectChanges(settingsSample, siteSample)
	jobs, err := (&deletionOrderPlanner{p.settings, p.cluster}).plan()
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 2 {
		t.Fatalf("there are %d runs, want 2", len(jobs))
	}
	want := []string{"delete configmaps/settings", "delete sites.example.com/web"}
	if got := namesOfSteps(jobs[0]); !slices.Equal(got, want) {
		t.Errorf("the steps are %q, want %q", got, want)
	}
	slices.Reverse(want)
	if got := namesOfSteps(jobs[1]); !slices.Equal(got, want) {
		t.Errorf("the steps of the reverse order are %q, want %q", got, want)
	}
	p = newObjectChanges(siteSample)
	if jobs, err := (&deletionOrderPlanner{p.settings, p.cluster}).plan(); err != nil || len(jobs) > 0 {
		t.Errorf("one object has the orders %v, %v", jobs, err)
	}
}

// The names of a pair have a number of characters in common, and are valid.
func TestNamePairs(t *testing.T) {
	t.Parallel()
	for i, shared := range []int{len("web"), 50, 57, 61, 240} {
		pair := namePairs()[i]
		first, second := pair.first("web"), pair.second("web")
		common := 0
		for common < min(len(first), len(second)) && first[common] == second[common] {
			common++
		}
		if common != shared || first == second || len(first) > 253 {
			t.Errorf("%s: %q and %q have %d characters in common, want %d", pair.text, first, second, common, shared)
		}
	}
}

// childOf returns a ConfigMap of a program that Sites own.
func childOf(name string, owners ...string) history.Version {
	var references []any
	for _, owner := range owners {
		references = append(references, map[string]any{"apiVersion": "example.com/v1", "kind": "Site", "name": owner, "uid": owner})
	}
	return history.Version{Resource: "configmaps", Name: name, UID: types.UID("child-" + name), ResourceVersion: "1", Manager: "site", Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "ownerReferences": references, "managedFields": []any{map[string]any{
			"manager": "site", "operation": "Apply", "fieldsV1": map[string]any{"f:data": map[string]any{"f:text": map[string]any{}}},
		}}},
	}}
}

// siteOf returns a Site of the user with a status.
func siteOf(name string, status map[string]any) history.Version {
	return history.Version{Resource: "sites.example.com", Name: name, UID: types.UID(name), ResourceVersion: "1", Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Site", "metadata": map[string]any{"name": name}, "status": status,
	}}
}

// One child for two objects is a difference, and so is a child that an object lacks.
func TestChildrenOfClones(t *testing.T) {
	t.Parallel()
	applied := make(map[faults.Object]bool)
	for _, name := range []string{"web", "shop"} {
		applied[faults.Object{Resource: "sites.example.com", Name: name}] = true
	}
	c := &children{
		perClone: map[string]int{"configmaps": 1}, shared: map[string]int{"configmaps": 0}, applied: []map[faults.Object]bool{applied}, cloneCounts: []int{2},
	}
	compare := func(versions ...history.Version) (objects []string) {
		h := history.History{Versions: append(versions, siteOf("web", nil), siteOf("shop", nil))}
		for _, d := range c.compare(0, h.State()) {
			objects = append(objects, d.Object)
		}
		return objects
	}
	if got := compare(childOf("web", "web"), childOf("shop", "shop")); len(got) > 0 {
		t.Errorf("two objects with a child each have the differences %q", got)
	}
	if got, want := compare(childOf("web", "web")), []string{"sites.example.com/shop"}; !slices.Equal(got, want) {
		t.Errorf("the differences are %q, want %q", got, want)
	}
	if got, want := compare(childOf("web", "web", "shop"), childOf("other", "web")), []string{"configmaps/web"}; !slices.Equal(got, want) {
		t.Errorf("the differences of a child with two owners are %q, want %q", got, want)
	}
}

// A program that reports why an object lacks its child is right, unless it reports that the child belongs to another object.
func TestReportsOfMissingChildren(t *testing.T) {
	t.Parallel()
	condition := func(kind, status string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": status, "message": "the name is too long"}}}
	}
	for name, test := range map[string]struct {
		status map[string]any
		line   string
		want   bool
	}{
		"nothing":                       {nil, "", false},
		"a condition":                   {condition("Ready", "False"), "", true},
		"a condition that is right":     {condition("Ready", "True"), "", false},
		"a negative condition":          {condition("Degraded", "False"), "", false},
		"a field":                       {map[string]any{"problem": "the name is too long"}, "", true},
		"a line about the object":       {nil, `level=ERROR msg="the name is too long" name=web`, true},
		"a line about another object":   {nil, `level=ERROR msg="the name is too long" name=web-x`, false},
		"a line about the other owner":  {nil, `level=ERROR msg="configmaps page already exists" name=web`, false},
		"a line of controller-runtime":  {nil, `ERROR Reconciler error {"name":"web","error":"Object a/page is already owned by another Site controller shop"}`, false},
		"a line of a program with yare": {nil, `level=ERROR name=web error="the object exists and is not its child: Site \"shop\" controls it"`, false},
	} {
		var lines []string
		if test.line != "" {
			lines = []string{test.line}
		}
		state := history.History{Versions: []history.Version{siteOf("web", test.status)}}.State()
		if got := hasReportedMissing("web", state, lines); got != test.want {
			t.Errorf("%s: reported %t, want %t", name, got, test.want)
		}
	}
}

// The state of a program that has seen one value alone is not expected if the value is unusable.
func TestUnusableValues(t *testing.T) {
	t.Parallel()
	withChild := history.History{Versions: []history.Version{childOf("page")}}.State()
	without := history.History{}.State()
	f := &oneValueStates{cluster: newObjectChanges().cluster, reference: sampleReference{hasMadeObjects: true}}
	for name, test := range map[string]struct {
		out  runResult
		want bool
	}{
		"a child":            {runResult{states: []history.State{withChild}}, false},
		"no child":           {runResult{states: []history.State{without}}, true},
		"an error":           {runResult{states: []history.State{withChild}, errorLines: []string{"level=ERROR"}}, true},
		"the end of the run": {runResult{states: []history.State{withChild}, verdict: finding.Exited}, true},
	} {
		if got := f.isUnusable(nil, &test.out); got != test.want {
			t.Errorf("%s: unusable %t, want %t", name, got, test.want)
		}
	}
	// The references log an error too, such as of a conflict. Once an error of the value was not recognised then.
	const inReferences = `E1126 12:00:00.1 1 a.go:7] "Reconciler error" err="conflict" namespace="test-qtjgk"`
	f.reference.errorShapes = map[string]bool{errorShape(inReferences): true}
	for line, want := range map[string]bool{
		`E1127 13:11:12.2 1 a.go:7] "Reconciler error" err="conflict" namespace="test-x4bcd"`:      false,
		`E1127 13:11:12.2 1 a.go:7] "Reconciler error" err="unknown class" namespace="test-x4bcd"`: true,
	} {
		if out := (&runResult{states: []history.State{withChild}, errorLines: []string{line}}); f.isUnusable(nil, out) != want {
			t.Errorf("unusable %t after %s", !want, line)
		}
	}
}

// A sample of which no field changes proves little.
func TestWarningOfUnchangedFields(t *testing.T) {
	t.Parallel()
	c := finding.Coverage{Fields: finding.Count{Total: 2}}
	if warnOfUnchanged(&c); len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "None of the 2 fields") {
		t.Errorf("the warnings are %q", c.Warnings)
	}
	c = finding.Coverage{Fields: finding.Count{Done: 1, Total: 2}}
	if warnOfUnchanged(&c); len(c.Warnings) > 0 {
		t.Errorf("a sample that changes has the warnings %q", c.Warnings)
	}
}
