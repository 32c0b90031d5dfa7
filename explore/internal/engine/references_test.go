package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
)

// A fault of a watch is planned in the steps in which both references received a change of the resource.
func TestWatchFaultsArePlannedWhereChangesCome(t *testing.T) {
	t.Parallel()
	r := &references{runs: []*runResult{
		{deliveries: []proxy.Delivery{
			{Resource: "pods", Step: 0, Type: "ADDED"}, {Resource: "secrets", Step: 0}, {Resource: "pods", Step: 1, Type: "DELETED"},
			{Resource: "services", Step: 1, Type: "ADDED"}, {Resource: "pods", Step: 1, Type: "DELETED"},
		}},
		{deliveries: []proxy.Delivery{{Resource: "pods", Step: 0, Type: "ADDED"}, {Resource: "services", Step: 1, Type: "MODIFIED"}, {Resource: "pods", Step: 1, Type: "ADDED"}}},
	}}
	for step, want := range [][]string{{"pods"}, {"pods", "services"}, nil} {
		if got := r.streams(step); !slices.Equal(got, want) {
			t.Errorf("in step %d the streams are %q, want %q", step, got, want)
		}
	}
}

// A write of random content has another hash in each run. The coverage reports such a write.
func TestWritesOfOneReferenceAreReported(t *testing.T) {
	t.Parallel()
	request := func(verb, hash string) proxy.RequestRecord {
		return proxy.RequestRecord{Point: proxy.Point{Verb: verb, Resource: "configmaps", Name: "page", ChangeHash: hash, Occurrence: 1}}
	}
	r := &references{runs: []*runResult{
		{requests: []proxy.RequestRecord{request("patch", "same"), request("patch", "one"), request("get", "one")}},
		{requests: []proxy.RequestRecord{request("patch", "same"), request("patch", "other")}},
	}}
	points, unrepeated := r.points()
	if len(points) != 1 || points[0].ChangeHash != "same" {
		t.Errorf("the points are %v", points)
	}
	if want := []string{"patch configmaps page (step 1, content one, occurrence 1)"}; !slices.Equal(unrepeated, want) {
		t.Errorf("the writes of one reference are %q, want %q", unrepeated, want)
	}
}

func TestWarningsOfReferences(t *testing.T) {
	t.Parallel()
	patch := func(code int) proxy.RequestRecord {
		return proxy.RequestRecord{Point: proxy.Point{Verb: "patch", Resource: "configmaps", Name: "page", Occurrence: 1}, Code: code}
	}
	for name, test := range map[string]struct {
		requests []proxy.RequestRecord
		errors   []string
		want     []string
	}{
		"a right program":             {[]proxy.RequestRecord{patch(200), patch(409)}, nil, nil},
		"a program that only reads":   {[]proxy.RequestRecord{{Point: proxy.Point{Verb: "get", Resource: "configmaps"}, Code: 200}}, nil, []string{"wrote no object"}},
		"a program of Events":         {[]proxy.RequestRecord{{Point: proxy.Point{Verb: "create", Resource: "events"}, Code: 201}}, nil, []string{"wrote no object"}},
		"a program whose writes fail": {[]proxy.RequestRecord{patch(403), patch(0)}, nil, []string{"Each of the 6 writes of the reference runs failed: the last one, patch configmaps page (step 1, occurrence 1), got no answer"}},
		"a program that logs errors":  {[]proxy.RequestRecord{patch(200)}, []string{"level=ERROR msg=x"}, []string{"level=ERROR msg=x"}},
	} {
		o := &runResult{requests: test.requests, errorLines: test.errors}
		got := (&references{runs: []*runResult{o, o, o}}).warnings()
		if len(got) != len(test.want) || len(got) > 0 && !strings.Contains(got[0], test.want[0]) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// pageState returns the state of a run whose program has made these ConfigMaps.
func pageState(names ...string) history.State {
	var h history.History
	for _, name := range names {
		h.Versions = append(h.Versions, history.Version{Resource: "configmaps", Name: name, UID: types.UID(name), ResourceVersion: "1", Manager: "webapp", Object: map[string]any{
			"metadata": map[string]any{"managedFields": []any{map[string]any{
				"manager": "webapp", "operation": "Apply", "fieldsV1": map[string]any{"f:data": map[string]any{"f:text": map[string]any{}}},
			}}},
			"data": map[string]any{"text": "hello"},
		}})
	}
	return h.State()
}

// Regression: one object that only some of the runs without faults had ended the exploration. It costs the comparison after
// its step.
func TestStepWithoutReferenceIsNotCompared(t *testing.T) {
	t.Parallel()
	steps := []finding.Step{{Name: "apply"}, {Name: "delete"}}
	run := func(second ...string) *runResult {
		return &runResult{states: []history.State{pageState("page"), pageState(second...)}}
	}
	r, err := newReferences([]*runResult{run("job"), run(), run()}, make([]error, 3), steps, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compare := r.comparison(nil)
	if got := compare(0, pageState()); len(got) != 1 {
		t.Errorf("after the first step the differences are %v", got)
	}
	if got := compare(1, pageState("other")); len(got) != 0 {
		t.Errorf("after the step without a reference the differences are %v", got)
	}
	if got := strings.Join(r.warnings(), "\n"); !strings.Contains(got, "The state after step 2 is not compared") || !strings.Contains(got, "configmaps/job is in 1 of 3 reference runs") {
		t.Errorf("the warnings are %s", got)
	}
}

// A run without faults that cannot be used is left out, as long as two others are left.
func TestReferenceRunIsLeftOut(t *testing.T) {
	t.Parallel()
	right := &runResult{states: []history.State{pageState("page")}}
	busy := &runResult{verdict: finding.Busy, differences: finding.Differences{{Object: "webapp", Reason: "it does not come to rest"}}}
	steps := []finding.Step{{Name: "apply"}}
	r, err := newReferences([]*runResult{right, right, busy}, make([]error, 3), steps, history.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.warnings(); len(got) == 0 || !strings.Contains(got[0], "reference run 3: busy") {
		t.Errorf("the warnings are %q", got)
	}
	_, err = newReferences([]*runResult{right, nil, busy}, []error{nil, errors.New("the server is away"), nil}, steps, history.Options{})
	if !errors.Is(err, ErrNoReference) || !strings.Contains(err.Error(), "the server is away") || !strings.Contains(err.Error(), "does not come to rest") {
		t.Errorf("one run is enough: %v", err)
	}
}
