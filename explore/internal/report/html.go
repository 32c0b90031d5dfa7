package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/schedule"
	"github.com/yare-go/yare/internal/proxy/faults"
)

//go:embed page.tmpl
var pageTemplate string

// HTML writes a record as one page. The page needs neither a server nor the network, and has no
// scripts. An event in a lane that does not exist is an error, and nothing is written.
func HTML(w io.Writer, r finding.Record) error {
	layout, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return err
	}
	p := newPage(r)
	for i, f := range sortedFindings(r) {
		s, err := newSection(i+1, f)
		if err != nil {
			return fmt.Errorf("finding %d: %w", i+1, err)
		}
		p.Findings = append(p.Findings, s)
	}
	return write(w, layout, p)
}

// page is the data of both templates.
type page struct {
	Operator, Summary string
	Findings          []section
	Runs              string
	Counts            []count
	// Refused counts the transitions that the API server refused, out of Planned.
	Refused, Planned int
	Warnings         []string
	Lists            []list
}

// newPage returns the page of a record without its findings.
func newPage(r finding.Record) page {
	return page{
		Operator: r.Coverage.Operator, Summary: summary(r), Runs: runs(r.Coverage), Counts: counts(r.Coverage),
		Refused: r.Coverage.Refused, Planned: r.Coverage.Transitions.Total, Warnings: r.Coverage.Warnings, Lists: lists(r.Coverage),
	}
}

// write writes a template with its data. It writes nothing if the template returns an error.
func write(w io.Writer, layout interface{ Execute(io.Writer, any) error }, data any) error {
	var b bytes.Buffer
	if err := layout.Execute(&b, data); err != nil {
		return err
	}
	_, err := w.Write(replaceInvisible(b.Bytes()))
	return err
}

// section is the part of the page for a finding.
type section struct {
	Title, Meaning string
	IsWarning      bool
	Steps          []string
	Faults         []faults.Fault
	// Schedule is indented JSON. Accept is YAML that accepts the finding, or empty.
	Schedule    string
	Accept      string
	Trace       []traceStep
	Differences []finding.Difference
}

// traceStep is the part of a trace that belongs to a step of the user.
type traceStep struct {
	Title  string
	Events []traceEvent
}

// traceEvent is a row of a trace.
type traceEvent struct {
	Seconds string
	Text    string
	IsFault bool
	// Lanes names the lanes of the event for readers who do not see the drawing.
	Lanes string
	// Path is the drawing of the event in the coordinates of the lanes.
	Path string
}

func newSection(number int, f finding.Finding) (section, error) {
	s := section{
		Title:     title(number, f),
		Meaning:   meaning(f.Verdict),
		IsWarning: f.Verdict.IsWarning(),
		Faults:    f.Schedule.Faults,
	}
	for _, step := range f.Schedule.Steps {
		s.Steps = append(s.Steps, describeStep(step))
	}
	text, err := indentedJSON(f.Schedule)
	if err != nil {
		return section{}, fmt.Errorf("the schedule is not JSON: %w", err)
	}
	s.Schedule, s.Accept = text, strings.Join(acceptLines(f), "\n")
	for _, d := range f.Differences {
		d.Want, d.Got = indentedValue(d.Want), indentedValue(d.Got)
		s.Differences = append(s.Differences, d)
	}
	for i, e := range f.Trace {
		drawn, err := newTraceEvent(e)
		if err != nil {
			return section{}, fmt.Errorf("event %d: %w", i+1, err)
		}
		if i == 0 || e.Step != f.Trace[i-1].Step {
			s.Trace = append(s.Trace, traceStep{Title: stepTitle(f.Schedule.Steps, e.Step)})
		}
		last := &s.Trace[len(s.Trace)-1]
		last.Events = append(last.Events, drawn)
	}
	return s, nil
}

// stepTitle returns the number of a step, counted from 1, with its name. A negative index means the
// time before the first step.
func stepTitle(steps []schedule.Step, index int) string {
	switch {
	case index < 0:
		return "before the first step"
	case index >= len(steps):
		return fmt.Sprintf("step %d", index+1)
	}
	return fmt.Sprintf("step %d: %s", index+1, steps[index].Name)
}

func newTraceEvent(e finding.Event) (traceEvent, error) {
	from, name, err := laneOf(e.Lane)
	if err != nil {
		return traceEvent{}, err
	}
	drawn := traceEvent{Seconds: fmt.Sprintf("%.3f", e.At.Seconds()), Text: e.Text, IsFault: e.Fault, Lanes: name}
	switch {
	case e.To != "":
		to, toName, err := laneOf(e.To)
		if err != nil {
			return traceEvent{}, err
		}
		drawn.Lanes += " to " + toName
		drawn.Path = arrow(from, to)
	case e.Fault:
		drawn.Path = fmt.Sprintf("M%d 7l10 10m0 -10l-10 10", from-5)
	default:
		drawn.Path = fmt.Sprintf("M%d 12a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", from-4)
	}
	return drawn, nil
}

// laneOf returns the middle of a lane, and its name. The lanes are 80 wide and 24 high.
func laneOf(lane finding.Lane) (x int, name string, err error) {
	switch lane {
	case finding.User:
		return 40, "user", nil
	case finding.Operator:
		return 120, "operator", nil
	case finding.Server:
		return 200, "API server", nil
	}
	return 0, "", fmt.Errorf("the lane %q is none of %s, %s and %s", lane, finding.User, finding.Operator, finding.Server)
}

// arrow returns the path of an arrow between two lanes.
func arrow(from, to int) string {
	tail := 8 // from the tip back to the ends of the arrowhead
	if from < to {
		tail = -8
	}
	return fmt.Sprintf("M%d 12H%dM%d 7L%d 12L%d 17", from, to, to+tail, to, to+tail)
}

// indentedJSON returns a value as JSON for people.
func indentedJSON(value any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // the template escapes
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return b.String(), nil
}

// indentedValue returns a JSON value with indentation. It returns text that is not JSON unchanged.
func indentedValue(value string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(value), "", "  "); err != nil {
		return value
	}
	return b.String()
}
