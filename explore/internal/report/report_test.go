package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/report"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

func TestTextOfSample(t *testing.T) {
	t.Parallel()
	const file = "testdata/record.txt"
	got := text(t, sample(t))
	if os.Getenv("UPDATE_REPORT") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the text is not %s: UPDATE_REPORT=1 go test writes the file (-want +got):\n%s", file, diff)
	}
}

func TestTextOfRecordWithoutFindings(t *testing.T) {
	t.Parallel()
	coverage := finding.Coverage{Operator: "./operators/account", Runs: 3, References: 3}
	complete := coverage
	complete.IsComplete = true
	for _, test := range []struct {
		coverage     finding.Coverage
		summary, end string
	}{
		{coverage, "nothing found so far: each kind has happened, but not all planned runs were made", "The budget ended before all planned runs were made."},
		{complete, "nothing found", "All planned runs were made."},
	} {
		got := text(t, finding.Record{Coverage: test.coverage})
		want := "./operators/account: " + test.summary + `

coverage
  3 runs in 0s with seed 0, among them 3 reference runs and 0 repeats. ` + test.end + `
  writes before which the program crashed 0 of 0
  fields that had another value           0 of 0
  transitions that the user made          0 of 0
  transitions that the API server refused 0 of 0
`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
	}
}

// The first line says how much of the samples was changed.
func TestFirstLineCountsChangedFields(t *testing.T) {
	t.Parallel()
	record := finding.Record{Coverage: finding.Coverage{Operator: "webapp", IsComplete: true, Fields: finding.Count{Done: 1, Total: 2}}}
	const want = "webapp: nothing found; 1 of 2 fields of the samples changed\n"
	if got := text(t, record); !strings.HasPrefix(got, want) {
		t.Errorf("the text begins otherwise than %q:\n%s", want, got)
	}
}

// A warning stands in the first lines of the text, and on the page, and "nothing found" does not stand alone.
func TestWarnings(t *testing.T) {
	t.Parallel()
	record := finding.Record{Coverage: finding.Coverage{Operator: "./operators/account", IsComplete: true, Warnings: []string{"The program wrote no object."}}}
	const want = "./operators/account: nothing found, but the exploration proves little: see the warnings\nwarning: The program wrote no object.\n"
	if got := text(t, record); !strings.HasPrefix(got, want) {
		t.Errorf("the text begins otherwise than\n%s\n%s", want, got)
	}
	warnings := page(t, record).all(hasClass("warning"))
	if len(warnings) != 1 || !strings.Contains(warnings[0].content(), "The program wrote no object.") {
		t.Errorf("the page has %d warnings", len(warnings))
	}
}

// The lines that accept a finding have the form of a file of intended differences.
func TestTextHasLinesThatAcceptAFinding(t *testing.T) {
	t.Parallel()
	crash := []faults.Fault{{Kind: faults.Crash}, {Kind: faults.Crash, Step: 1}}
	for name, test := range map[string]struct {
		finding finding.Finding
		want    string
	}{
		"a field": {
			finding.Finding{Verdict: finding.Wrong, Schedule: finding.Schedule{Faults: crash}, Differences: []finding.Difference{
				{Object: "secrets/web", Path: "data.password", Want: "1"}, {Object: "secrets/web", Path: "data.password", Reason: "it changed again"},
			}},
			`     - objects: "secrets/web"
       path: "data.password"
       faults: [crash]
       reason: ""
`,
		},
		"an object, without a fault": {
			finding.Finding{Verdict: finding.Destroyed, Differences: []finding.Difference{{Object: "pods/web-*", Reason: "it died"}}},
			`     - objects: "pods/web-*"
       path: "*"
       faults: [transition]
       reason: ""
`,
		},
		"a check":   {finding.Finding{Verdict: finding.CheckFailed, Differences: []finding.Difference{{Object: "pods/a", Check: "few", Reason: "many"}}}, ""},
		"a program": {finding.Finding{Verdict: finding.Exited, Differences: []finding.Difference{{Object: "a", Reason: "exit status 1"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, after, _ := strings.Cut(text(t, recordOf(test.finding)), "with the reason\n")
			got, _, _ := strings.Cut(after, "\ncoverage")
			if got != test.want {
				t.Errorf("the lines are\n%swant\n%s", got, test.want)
			}
		})
	}
}

func TestTextNamesAFailedCheck(t *testing.T) {
	t.Parallel()
	got := text(t, recordOf(finding.Finding{Verdict: finding.CheckFailed, Differences: []finding.Difference{
		{Object: "configmaps/page", Check: "one page", Reason: "in step 2: there are 2"},
	}}))
	if want := "     check one page\n       in step 2: there are 2\n"; !strings.Contains(got, want) {
		t.Errorf("the text lacks %q:\n%s", want, got)
	}
}

// A step says once what the user does.
func TestTextDescribesSteps(t *testing.T) {
	t.Parallel()
	site := json.RawMessage(`{"kind":"Site","metadata":{"name":"web"}}`)
	page := faults.Object{Resource: "pages.example.com", Name: "main"}
	for _, test := range []struct {
		step finding.Step
		want string
	}{
		{finding.Step{Name: "apply web", Apply: []json.RawMessage{site}}, "apply web (Site web)"},
		{finding.Step{Name: "delete the samples", Delete: []faults.Object{page, page}}, "delete the samples (pages.example.com/main, pages.example.com/main)"},
		{finding.Step{Name: "create", Apply: []json.RawMessage{site, site}}, "create: apply Site web (2 times)"},
		{finding.Step{Name: "apply web", Apply: []json.RawMessage{site}, Delete: []faults.Object{page}}, "apply web: apply Site web; delete pages.example.com/main"},
		{finding.Step{Apply: []json.RawMessage{site}}, "apply Site web"},
	} {
		got := text(t, recordOf(finding.Finding{Schedule: finding.Schedule{Steps: []finding.Step{test.step}}}))
		if want := "     1. " + test.want + "\n"; !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
}

// A step says which fields of an object differ from the former step, so that a reader need not guess what the user has changed.
func TestTextNamesChangedFields(t *testing.T) {
	t.Parallel()
	apply := func(objects ...string) (s finding.Step) {
		s.Name = "apply web"
		for _, o := range objects {
			s.Apply = append(s.Apply, json.RawMessage(o))
		}
		return s
	}
	for name, test := range map[string]struct {
		first, second finding.Step
		want          string
	}{
		"a value": {
			apply(`{"kind":"Site","metadata":{"name":"web"},"spec":{"size":1}}`), apply(`{"kind":"Site","metadata":{"name":"web"},"spec":{"size":3}}`),
			"apply web (Site web), with spec.size 1 -> 3",
		},
		"new and gone": {
			apply(`{"kind":"Site","metadata":{"name":"web"},"spec":{"size":1}}`), apply(`{"kind":"Site","metadata":{"name":"web"},"spec":{"text":"a"}}`),
			`apply web (Site web), with no spec.size, spec.text "a"`,
		},
		"nothing": {
			apply(`{"kind":"Site","metadata":{"name":"web"}}`), apply(`{"kind":"Site","metadata":{"name":"web"}}`), "apply web (Site web)",
		},
		"another object": {
			apply(`{"kind":"Site","metadata":{"name":"web"},"spec":{"size":1}}`), apply(`{"kind":"Site","metadata":{"name":"other"},"spec":{"size":3}}`), "apply web (Site other)",
		},
		"a Secret": {
			apply(`{"kind":"Secret","metadata":{"name":"login"},"data":{"key":"b25l"}}`), apply(`{"kind":"Secret","metadata":{"name":"login"},"data":{"key":"dHdv"}}`),
			"apply web (Secret login), with another content",
		},
		"many": {
			apply(`{"kind":"Site","metadata":{"name":"web"}}`), apply(`{"kind":"Site","metadata":{"name":"web"},"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}`),
			"apply web (Site web), with a 1, b 2, c 3, d 4, and 2 more",
		},
	} {
		got := text(t, recordOf(finding.Finding{Schedule: finding.Schedule{Steps: []finding.Step{test.first, test.second}}}))
		if want := "     2. " + test.want + "\n"; !strings.Contains(got, want) {
			t.Errorf("%s: the text lacks %q:\n%s", name, want, got)
		}
	}
}

// The text shows what the program wrote, from the step of the first fault on, so that a reader sees which write is missing.
func TestTextShowsWhatHappened(t *testing.T) {
	t.Parallel()
	event := func(step int, lane, to finding.Lane, text string) finding.Event {
		return finding.Event{At: time.Duration(step+1) * time.Second, Step: step, Lane: lane, To: to, Text: text}
	}
	crash := event(1, finding.Operator, "", "crash")
	crash.IsFault = true
	trace := []finding.Event{
		event(0, finding.Operator, finding.Server, "create pages web (step 1, occurrence 1) → 201"),
		event(1, finding.Server, finding.Operator, "watch pages: ADDED web"),
		crash,
		event(1, finding.Operator, finding.Server, "patch pages web (step 2, content 6cd6, occurrence 1) → 200"),
	}
	for i := range 26 {
		trace = append(trace, event(3, finding.Operator, finding.Server, fmt.Sprintf("patch pages web%d → 200", i)))
	}
	got := text(t, recordOf(finding.Finding{Schedule: finding.Schedule{Steps: make([]finding.Step, 4)}, Trace: trace}))
	for _, want := range []string{
		"   what happened, without the events of watches\n" +
			"       1.000 s  step 1  operator: create pages web (occurrence 1) → 201\n" +
			"       2.000 s  step 2  fault: crash\n" +
			"       2.000 s  step 2  operator: patch pages web (content 6cd6, occurrence 1) → 200\n" +
			"       4.000 s  step 4  operator: patch pages web0 → 200\n",
		"patch pages web9 → 200\n                6 more events\n       4.000 s  step 4  operator: patch pages web16 → 200\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
}

// The text of a long run has the last steps, and always those from the first fault on.
func TestTextBeginsLongRunsLate(t *testing.T) {
	t.Parallel()
	var trace []finding.Event
	for step := range 6 {
		for range 15 {
			trace = append(trace, finding.Event{Step: step, Lane: finding.Operator, To: finding.Server, Text: fmt.Sprintf("write of step %d", step+1)})
		}
	}
	f := finding.Finding{Schedule: finding.Schedule{Steps: make([]finding.Step, 6)}, Trace: trace}
	got := text(t, recordOf(f))
	if strings.Contains(got, "write of step 4") || strings.Count(got, "write of step 5") != 15 || strings.Count(got, "write of step 6") != 15 {
		t.Errorf("the text has other events than those of the last two steps:\n%s", got)
	}
	trace[3*15].IsFault = true
	if got = text(t, recordOf(f)); strings.Contains(got, "write of step 3") || strings.Count(got, "write of step 4") != 15 {
		t.Errorf("the text has other events than those from the fault on:\n%s", got)
	}
}

// Names that an exploration makes long stay readable. The lines for the file of intended differences have the whole names.
func TestTextCountsEqualCharacters(t *testing.T) {
	t.Parallel()
	name := "configmaps/web-" + strings.Repeat("l", 57) + "a"
	got := text(t, recordOf(finding.Finding{Verdict: finding.Wrong, Differences: []finding.Difference{{Object: name, Want: finding.Exists}}}))
	for _, want := range []string{"     configmaps/web-l{57}a\n", "- objects: \"" + name + "\"\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the text lacks %q:\n%s", want, got)
		}
	}
}

func TestTextShortensValues(t *testing.T) {
	t.Parallel()
	got := text(t, recordOf(finding.Finding{
		Verdict:     finding.Wrong,
		Differences: []finding.Difference{{Object: "configmaps/a", Path: "data.long", Want: `"` + strings.Repeat("ü", 1000) + `"`}},
	}))
	if !strings.Contains(got, `want "ü`) || !strings.Contains(got, "ü…\n") || strings.Count(got, "ü") > 200 {
		t.Errorf("the value of 1000 characters is not shortened:\n%s", got)
	}
}

// TestTextCannotControlTerminal checks that text of objects neither moves the cursor nor changes the
// direction of a line.
func TestTextCannotControlTerminal(t *testing.T) {
	t.Parallel()
	got := text(t, recordOf(hostileFinding("\x1b[2J\u202e\u009b\x00\xff")))
	if strings.ContainsAny(got, "\x1b\u202e\u009b\x00") || !utf8.ValidString(got) {
		t.Errorf("the text has characters that control a terminal: %q", got)
	}
	if !strings.Contains(got, "\ufffd[2J") {
		t.Errorf("the visible part of the text is missing: %q", got)
	}
}

func TestPageShowsEachEventOnce(t *testing.T) {
	t.Parallel()
	record := sample(t)
	root := page(t, record)
	var got []string
	for _, row := range root.all(hasClass("event")) {
		got = append(got, row.child("td", 2).child("span", 0).content())
	}
	var want []string
	for _, verdict := range []finding.Verdict{finding.Destroyed, finding.Wrong, finding.Late} {
		for _, f := range record.Findings {
			if f.Verdict != verdict {
				continue
			}
			for _, e := range f.Trace {
				want = append(want, e.Text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events, the warning last (-want +got):\n%s", diff)
	}
}

func TestPageMarksFaults(t *testing.T) {
	t.Parallel()
	root := page(t, sample(t))
	var got []string
	for _, row := range root.all(hasClass("event")) {
		if hasClass("fault")(row) {
			got = append(got, row.child("td", 2).content())
		}
	}
	want := []string{
		"fault: crash before patch accounts.example.com/status alice",
		"fault: strip-labels of deployments.apps/alice",
		"fault: the events of deployments.apps are held back",
		"fault: 410 to watch secrets",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestPageDrawsEventsInLanes(t *testing.T) {
	t.Parallel()
	root := page(t, recordOf(finding.Finding{Trace: []finding.Event{
		{Lane: finding.User, To: finding.Server},
		{Lane: finding.Server, To: finding.Operator},
		{Lane: finding.Operator, IsFault: true},
		{Lane: finding.Operator},
	}}))
	type drawing struct{ Lanes, Path string }
	var got []drawing
	for _, svg := range root.all(isElement("svg")) {
		got = append(got, drawing{svg.attribute("aria-label"), svg.child("path", 0).attribute("d")})
	}
	want := []drawing{
		{"user to API server", "M40 12H200M192 7L200 12L192 17"},
		{"API server to operator", "M200 12H120M128 7L120 12L128 17"},
		{"operator", "M115 7l10 10m0 -10l-10 10"},
		{"operator", "M116 12a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("drawings (-want +got):\n%s", diff)
	}
}

func TestPageGroupsEventsByStep(t *testing.T) {
	t.Parallel()
	root := page(t, recordOf(finding.Finding{
		Schedule: finding.Schedule{Steps: []finding.Step{{Name: "create"}, {Name: "scale"}}},
		Trace: []finding.Event{
			{Step: -1, Lane: finding.Operator},
			{Step: 0, Lane: finding.User},
			{Step: 0, Lane: finding.Server},
			{Step: 1, Lane: finding.User},
			{Step: 2, Lane: finding.Server},
		},
	}))
	type group struct {
		Title  string
		Events int
	}
	var got []group
	for _, body := range root.all(isElement("tbody")) {
		got = append(got, group{body.child("tr", 0).content(), len(body.all(hasClass("event")))})
	}
	want := []group{{"before the first step", 1}, {"step 1: create", 2}, {"step 2: scale", 1}, {"step 3", 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

func TestPageShowsScheduleForReplay(t *testing.T) {
	t.Parallel()
	record := sample(t)
	root := page(t, record)
	var got []finding.Schedule
	for _, details := range root.all(isElement("details")) {
		if details.child("summary", 0).content() != "Schedule, for a replay" {
			continue
		}
		var s finding.Schedule
		if err := json.Unmarshal([]byte(details.child("pre", 0).content()), &s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if len(got) != len(record.Findings) {
		t.Fatalf("the page shows %d schedules, want %d", len(got), len(record.Findings))
	}
	if diff := cmp.Diff(record.Findings[1].Schedule.Faults, got[0].Faults); diff != "" {
		t.Errorf("faults of the first schedule (-want +got):\n%s", diff)
	}
}

// TestPageEscapesTextOfObjects checks that no text of a record becomes an element, an attribute or a
// style of the page.
func TestPageEscapesTextOfObjects(t *testing.T) {
	t.Parallel()
	const hostile = `</style></pre><script>alert(1)</script>"'><img src=x onerror=alert(1)> {{.}} ]]> &amp; --> javascript:alert(1)`
	record := recordOf(hostileFinding(hostile))
	record.Coverage = finding.Coverage{
		Operator:            hostile,
		Kinds:               map[faults.Kind]finding.Count{hostile: {}},
		NotReached:          []string{hostile},
		NotSeenAgain:        []string{hostile},
		Unrepeated:          []string{hostile},
		UnusedAcceptances:   []string{hostile},
		Warnings:            []string{hostile},
		NotApplicable:       map[faults.Kind]string{hostile: hostile},
		Masked:              []string{hostile},
		FieldsWithoutValues: map[string]string{hostile: hostile},
	}
	root := page(t, record)
	allowed := strings.Fields(`html head meta title style body h1 h2 h3 section p ol ul li table thead tbody tr th td
		span strong svg path div pre code details summary`)
	for _, e := range root.all(func(*element) bool { return true }) {
		if !slices.Contains(allowed, e.XMLName.Local) {
			t.Errorf("the page has an element %s", e.XMLName.Local)
		}
		for _, a := range e.Attributes {
			if strings.HasPrefix(a.Name.Local, "on") || strings.Contains(a.Value, "alert") {
				t.Errorf("the element %s has the attribute %s=%q", e.XMLName.Local, a.Name.Local, a.Value)
			}
		}
	}
	for _, row := range root.all(hasClass("event")) {
		if got := row.child("td", 2).child("span", 0).content(); got != hostile {
			t.Errorf("the page shows %q in place of %q", got, hostile)
		}
	}
}

// TestPageNeedsNothingElse checks that the page loads nothing.
func TestPageNeedsNothingElse(t *testing.T) {
	t.Parallel()
	root := page(t, sample(t))
	for _, e := range root.all(func(*element) bool { return true }) {
		for _, name := range []string{"src", "href", "srcset", "action"} {
			if value := e.attribute(name); value != "" {
				t.Errorf("the element %s has %s=%q", e.XMLName.Local, name, value)
			}
		}
	}
	style := root.all(isElement("style"))[0].content()
	if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
		t.Errorf("the style loads something:\n%s", style)
	}
}

func TestPageOfUnknownLaneIsError(t *testing.T) {
	t.Parallel()
	for _, event := range []finding.Event{{Lane: "kubelet"}, {Lane: finding.User, To: "kubelet"}} {
		var b bytes.Buffer
		err := report.HTML(&b, recordOf(finding.Finding{Trace: []finding.Event{{Lane: finding.User}, event}}))
		const want = `finding 1: event 2: the lane "kubelet" is none of user, operator and server`
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if b.Len() > 0 {
			t.Errorf("%d bytes were written", b.Len())
		}
	}
}

func TestErrorOfWriterIsReturned(t *testing.T) {
	t.Parallel()
	record := sample(t)
	if err := report.Text(brokenWriter{}, record); !errors.Is(err, errBroken) {
		t.Errorf("Text returned %v", err)
	}
	if err := report.HTML(brokenWriter{}, record); !errors.Is(err, errBroken) {
		t.Errorf("HTML returned %v", err)
	}
}

var errBroken = errors.New("the disk is full")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// sample returns the record of testdata, whose warning is the first finding.
func sample(t *testing.T) finding.Record {
	t.Helper()
	content, err := os.ReadFile("testdata/record.json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var r finding.Record
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func recordOf(f finding.Finding) finding.Record {
	return finding.Record{Findings: []finding.Finding{f}}
}

// hostileFinding returns a finding with the text wherever text of objects may be.
func hostileFinding(text string) finding.Finding {
	return finding.Finding{
		Operator: text,
		Verdict:  finding.Wrong,
		Schedule: finding.Schedule{
			Steps: []finding.Step{{Name: text, Delete: []faults.Object{{Resource: text, Name: text}}}},
			Faults: []faults.Fault{
				{Kind: faults.Reset, At: &proxy.Point{Verb: text, Resource: text, Subresource: text, Name: text}},
				{Kind: faults.WatchCut, Stream: text},
			},
		},
		Differences: []finding.Difference{{Object: text, Path: text, Want: text, Got: text}, {Object: text, Reason: text}, {Check: text, Reason: text}},
		Trace:       []finding.Event{{Lane: finding.User, To: finding.Server, Text: text}, {Lane: finding.User, Text: text, IsFault: true}},
	}
}

func text(t *testing.T, r finding.Record) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Text(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// page returns the elements of a page. It fails the test if the page is not well-formed.
func page(t *testing.T, r finding.Record) *element {
	t.Helper()
	var b bytes.Buffer
	if err := report.HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(&b)
	var root element
	if err := decoder.Decode(&root); err != nil {
		t.Fatalf("the page is not well-formed: %v", err)
	}
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return &root
		}
		if _, isText := token.(xml.CharData); err != nil || !isText {
			t.Fatalf("after the page: %v %v", token, err)
		}
	}
}

// element is an element of a page.
type element struct {
	XMLName    xml.Name
	Attributes []xml.Attr
	// Nodes are elements and texts.
	Nodes []any
}

// UnmarshalXML reads the element with all that it contains, in order.
func (e *element) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	e.XMLName, e.Attributes = start.Name, start.Attr
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			inner := new(element)
			if err := inner.UnmarshalXML(d, token); err != nil {
				return err
			}
			e.Nodes = append(e.Nodes, inner)
		case xml.CharData:
			e.Nodes = append(e.Nodes, string(token))
		case xml.EndElement:
			return nil
		}
	}
}

// all returns the element and all elements within it that match, in the order of the page.
func (e *element) all(matches func(*element) bool) []*element {
	var found []*element
	if matches(e) {
		found = append(found, e)
	}
	for _, node := range e.Nodes {
		if inner, ok := node.(*element); ok {
			found = append(found, inner.all(matches)...)
		}
	}
	return found
}

// child returns a child by its index among the children of this name. It returns an empty element
// if there is no such child.
func (e *element) child(name string, index int) *element {
	for _, node := range e.Nodes {
		if inner, ok := node.(*element); ok && inner.XMLName.Local == name {
			if index == 0 {
				return inner
			}
			index--
		}
	}
	return new(element)
}

// content returns the text within the element.
func (e *element) content() string {
	var b strings.Builder
	for _, node := range e.Nodes {
		switch node := node.(type) {
		case string:
			b.WriteString(node)
		case *element:
			b.WriteString(node.content())
		}
	}
	return b.String()
}

func (e *element) attribute(name string) string {
	for _, a := range e.Attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func isElement(name string) func(*element) bool {
	return func(e *element) bool { return e.XMLName.Local == name }
}

func hasClass(class string) func(*element) bool {
	return func(e *element) bool { return slices.Contains(strings.Fields(e.attribute("class")), class) }
}

// The first line says whether a kind never happened, whether a finding was not confirmed, and whether the exploration ended
// early. A finding comes first.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	wrong := finding.Finding{Verdict: finding.Wrong, Seen: 1, Tries: 1}
	unconfirmed := wrong
	unconfirmed.IsUnconfirmed = true
	for _, test := range []struct {
		record finding.Record
		want   string
	}{
		{finding.Record{Coverage: finding.Coverage{NeverHappened: []faults.Kind{faults.Conflict, faults.Reset}}},
			"incomplete, nothing found so far, and these kinds never happened: conflict, reset"},
		{finding.Record{Coverage: finding.Coverage{Stopped: "there is no stable reference"}}, "not explored\nwhy: there is no stable reference"},
		{finding.Record{Coverage: finding.Coverage{Stopped: "the server is gone"}, Findings: []finding.Finding{wrong}},
			"1 finding, and the exploration could not go on\nwhy: the server is gone"},
		{finding.Record{Coverage: finding.Coverage{IsComplete: true}, Findings: []finding.Finding{unconfirmed}}, "1 warning"},
	} {
		if got := text(t, test.record); !strings.HasPrefix(got, ": "+test.want+"\n") {
			t.Errorf("the text does not begin with %q:\n%s", test.want, got)
		}
	}
}

// A report has objects of the user. Everybody on the machine could read the file.
func TestOnlyTheUserCanReadAReport(t *testing.T) {
	t.Parallel()
	former := filepath.Join(t.TempDir(), "former.json")
	if err := os.WriteFile(former, nil, 0o644); err != nil { //nolint:gosec // a file of an earlier release
		t.Fatal(err)
	}
	for _, path := range []string{former, filepath.Join(t.TempDir(), "new.html")} {
		if err := report.WriteFile(path, finding.Record{}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has the mode %o", filepath.Base(path), mode)
		}
	}
}

// The heading of a finding of a rule says first what is wrong, and the entry that accepts the finding names the rule.
func TestTextOfRule(t *testing.T) {
	t.Parallel()
	got := text(t, finding.Record{Findings: []finding.Finding{{
		Verdict: finding.BreaksRule, Rule: "gone", Summary: "configmaps/web is left", Seen: 2, Tries: 9, AlsoWith: []string{"two samples"},
		Differences: finding.Differences{{Object: "configmaps/web", Reason: "configmaps/web is left. Nobody needs it."}},
	}}, Coverage: finding.Coverage{Notes: []string{"at rest: times alone"}, Recreated: []string{"jobs.batch/a"}}})
	for _, want := range []string{
		"1. gone: configmaps/web is left, seen in 2 of 9 runs\n   An object is left after the user has deleted all samples.\n",
		"   also seen with\n     two samples\n",
		"     - objects: \"configmaps/web\"\n       path: \"*\"\n       rule: \"gone\"\n       reason: \"\"\n",
		"at rest: times alone", "jobs.batch/a",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text does not contain %q:\n%s", want, got)
		}
	}
}
