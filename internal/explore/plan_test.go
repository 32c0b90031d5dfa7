package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// A fault of a watch is planned in the steps in which both references received a change of the resource.
func TestWatchFaultsArePlannedWhereChangesCome(t *testing.T) {
	t.Parallel()
	e := &explorer{references: []*outcome{
		{deliveries: []proxy.Delivery{
			{Resource: "pods", Step: 0, Type: "ADDED"}, {Resource: "secrets", Step: 0}, {Resource: "pods", Step: 1, Type: "DELETED"},
			{Resource: "services", Step: 1, Type: "ADDED"}, {Resource: "pods", Step: 1, Type: "DELETED"},
		}},
		{deliveries: []proxy.Delivery{{Resource: "pods", Step: 0, Type: "ADDED"}, {Resource: "services", Step: 1, Type: "MODIFIED"}, {Resource: "pods", Step: 1, Type: "ADDED"}}},
	}}
	for step, want := range [][]string{{"pods"}, {"pods", "services"}, nil} {
		if got := e.streams(step); !slices.Equal(got, want) {
			t.Errorf("in step %d the streams are %q, want %q", step, got, want)
		}
	}
}

// A write of random content has another hash in each run. The coverage reports such a write.
func TestWritesOfOneReferenceAreReported(t *testing.T) {
	t.Parallel()
	request := func(verb, hash string) proxy.Request {
		return proxy.Request{Point: proxy.Point{Verb: verb, Resource: "configmaps", Name: "page", ChangeHash: hash, Occurrence: 1}}
	}
	e := &explorer{references: []*outcome{
		{requests: []proxy.Request{request("patch", "same"), request("patch", "one"), request("get", "one")}},
		{requests: []proxy.Request{request("patch", "same"), request("patch", "other")}},
	}}
	if points := e.points(); len(points) != 1 || points[0].ChangeHash != "same" {
		t.Errorf("the points are %v", points)
	}
	if want := []string{"patch configmaps page (step 1, occurrence 1)"}; !slices.Equal(e.coverage.Unrepeated, want) {
		t.Errorf("the writes of one reference are %q, want %q", e.coverage.Unrepeated, want)
	}
}

func TestDoubtsAboutReferences(t *testing.T) {
	t.Parallel()
	patch := func(code int) proxy.Request {
		return proxy.Request{Point: proxy.Point{Verb: "patch", Resource: "configmaps", Name: "page", Occurrence: 1}, Code: code}
	}
	for name, test := range map[string]struct {
		requests  []proxy.Request
		errorLine string
		want      []string
	}{
		"a right program":             {[]proxy.Request{patch(200), patch(409)}, "", nil},
		"a program that only reads":   {[]proxy.Request{{Point: proxy.Point{Verb: "get", Resource: "configmaps"}, Code: 200}}, "", []string{"wrote no object"}},
		"a program of Events":         {[]proxy.Request{{Point: proxy.Point{Verb: "create", Resource: "events"}, Code: 201}}, "", []string{"wrote no object"}},
		"a program whose writes fail": {[]proxy.Request{patch(403), patch(0)}, "", []string{"Each of the 6 writes of the reference runs failed: the last one, patch configmaps page (step 1, occurrence 1), got no answer"}},
		"a program that logs errors":  {[]proxy.Request{patch(200)}, "level=ERROR msg=x", []string{"level=ERROR msg=x"}},
	} {
		o := &outcome{requests: test.requests, errorLine: test.errorLine}
		got := (&explorer{references: []*outcome{o, o, o}}).doubts()
		if len(got) != len(test.want) || len(got) > 0 && !strings.Contains(got[0], test.want[0]) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestLastError(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"time=2026-05-01T12:00:00Z level=ERROR msg=failed":      true,
		"12:39:18 ERR webapp failed default/hello":              true,
		"E0501 12:00:00.000000       1 controller.go:1] failed": true,
		`{"level":"error","msg":"failed"}`:                      true,
		"2026-05-01T12:00:00Z\tERROR\tfailed":                   true,
		"12:39:18 INF no ERROR here":                            false,
		`level=INFO msg="the level is not level ERROR"`:         false,
	} {
		l := &output{}
		fmt.Fprintln(l, line)
		fmt.Fprintln(l, "12:39:19 INF later")
		if got := l.lastError() == line; got != want {
			t.Errorf("%q is an error: %t, want %t", line, got, want)
		}
	}
}

// The events of watches in a trace are few enough to be read.
func TestTraceLimitsEventsOfWatches(t *testing.T) {
	t.Parallel()
	watch := func(step int, text string) finding.Event {
		return finding.Event{Step: step, Lane: finding.Server, To: finding.Operator, Text: text}
	}
	write := finding.Event{Lane: finding.Operator, To: finding.Server, Text: "patch"}
	events := []finding.Event{watch(0, "a"), watch(0, "a"), watch(0, "a"), write, watch(0, "a")}
	for i := range maxWatchEvents {
		events = append(events, watch(0, fmt.Sprint(i)))
	}
	events = append(events, write, watch(1, "b"))
	got := limitWatchEvents(events)
	want := []finding.Event{watch(0, "a (3 times)"), write, watch(0, "a")}
	for i := range maxWatchEvents - 2 {
		want = append(want, watch(0, fmt.Sprint(i)))
	}
	want = append(want, write, watch(0, "2 more events of watches"), watch(1, "b"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
}

func TestReadAcceptances(t *testing.T) {
	t.Parallel()
	read := func(text string) ([]finding.Acceptance, error) {
		path := filepath.Join(t.TempDir(), "accept.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadAcceptances(path)
	}
	got, err := read(`
- objects: secrets/web
  path: data.password
  faults: [crash, foreign]
  reason: nobody keeps it
- objects: configmaps/cache-*
  reason: it is a cache
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []finding.Acceptance{
		{Objects: "secrets/web", Path: "data.password", Faults: append([]faults.Kind{faults.Crash}, faults.FamilyOf(faults.ForeignEdit).Describe().Kinds...), Reason: "nobody keeps it"},
		{Objects: "configmaps/cache-*", Path: "*", Reason: "it is a cache"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the entries (-want +got):\n%s", diff)
	}
	for want, text := range map[string]string{
		"accept.yaml: entry 2: the accepted path secrets/web data has no reason": "[{path: status, reason: slow}, {objects: secrets/web, path: data}]",
		"accept.yaml: entry 1: an accepted path is empty":                        "[{reason: slow}]",
		`accept.yaml: entry 1: there is no kind of fault "crashes"`:              "[{path: status, reason: slow, faults: [crashes]}]",
		"accept.yaml is no list of intended differences":                         "path: status",
		`unknown field "object"`:                                                 "[{object: secrets/web, reason: slow}]",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// Findings of one check are the same finding, whatever version shows them.
func TestKnownFindings(t *testing.T) {
	t.Parallel()
	e := &explorer{findings: []finding.Finding{
		{Verdict: finding.CheckFailed, Differences: []finding.Difference{{Object: "configmaps/a", Check: "few", Reason: "at 0.1 s"}}},
		{Verdict: finding.Wrong, Differences: []finding.Difference{{Object: "configmaps/a", Path: "data"}}},
	}}
	for _, test := range []struct {
		verdict    finding.Verdict
		difference finding.Difference
		want       bool
	}{
		{finding.CheckFailed, finding.Difference{Object: "configmaps/b", Check: "few", Reason: "at 0.2 s"}, true},
		{finding.CheckFailed, finding.Difference{Object: "configmaps/a", Check: "many", Reason: "at 0.1 s"}, false},
		{finding.Wrong, finding.Difference{Object: "configmaps/a", Path: "data", Got: "1"}, true},
		{finding.Wrong, finding.Difference{Object: "configmaps/a", Path: "data.x"}, false},
	} {
		out := &outcome{problem: test.verdict, differences: []finding.Difference{test.difference}}
		if got := e.isKnown(out); got != test.want {
			t.Errorf("%s %s: known is %t, want %t", test.verdict, test.difference, got, test.want)
		}
	}
}
