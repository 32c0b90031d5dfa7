package engine

import (
	"slices"
	"strings"
	"testing"

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
	if want := []string{"patch configmaps page (step 1, occurrence 1)"}; !slices.Equal(unrepeated, want) {
		t.Errorf("the writes of one reference are %q, want %q", unrepeated, want)
	}
}

func TestWarningsOfReferences(t *testing.T) {
	t.Parallel()
	patch := func(code int) proxy.RequestRecord {
		return proxy.RequestRecord{Point: proxy.Point{Verb: "patch", Resource: "configmaps", Name: "page", Occurrence: 1}, Code: code}
	}
	for name, test := range map[string]struct {
		requests  []proxy.RequestRecord
		errorLine string
		want      []string
	}{
		"a right program":             {[]proxy.RequestRecord{patch(200), patch(409)}, "", nil},
		"a program that only reads":   {[]proxy.RequestRecord{{Point: proxy.Point{Verb: "get", Resource: "configmaps"}, Code: 200}}, "", []string{"wrote no object"}},
		"a program of Events":         {[]proxy.RequestRecord{{Point: proxy.Point{Verb: "create", Resource: "events"}, Code: 201}}, "", []string{"wrote no object"}},
		"a program whose writes fail": {[]proxy.RequestRecord{patch(403), patch(0)}, "", []string{"Each of the 6 writes of the reference runs failed: the last one, patch configmaps page (step 1, occurrence 1), got no answer"}},
		"a program that logs errors":  {[]proxy.RequestRecord{patch(200)}, "level=ERROR msg=x", []string{"level=ERROR msg=x"}},
	} {
		o := &runResult{requests: test.requests, errorLine: test.errorLine}
		got := (&references{runs: []*runResult{o, o, o}}).warnings()
		if len(got) != len(test.want) || len(got) > 0 && !strings.Contains(got[0], test.want[0]) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
