package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/yare-go/yare/explore/internal/finding"
)

//go:embed page.tmpl
var pageTemplate string

// HTML writes a record as one page. The page needs neither a server nor the network, and has no
// scripts. An event in a lane that does not exist is an error, and nothing is written.
func HTML(w io.Writer, r finding.Record) error {
	layout, err := template.New("page").Funcs(functions()).Parse(pageTemplate)
	if err != nil {
		return err
	}
	p := struct {
		finding.Record
		Traces [][]traceStep // by the index of the finding
	}{Record: r}
	for i, f := range sortedFindings(r) {
		trace, err := newTrace(f)
		if err != nil {
			return fmt.Errorf("finding %d: %w", i+1, err)
		}
		p.Traces = append(p.Traces, trace)
	}
	return write(w, layout, p)
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

// newTrace returns the rows of the trace of a finding, by the steps of the user.
func newTrace(f finding.Finding) (steps []traceStep, err error) {
	for i, e := range f.Trace {
		drawn, err := newTraceEvent(e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		if i == 0 || e.Step != f.Trace[i-1].Step {
			steps = append(steps, traceStep{Title: stepTitle(f.Schedule.Steps, e.Step)})
		}
		last := &steps[len(steps)-1]
		last.Events = append(last.Events, drawn)
	}
	return steps, nil
}

// stepTitle returns the number of a step, counted from 1, with its name. A negative index means the
// time before the first step.
func stepTitle(steps []finding.Step, index int) string {
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
	drawn := traceEvent{Seconds: fmt.Sprintf("%.3f", e.At.Seconds()), Text: e.Text, IsFault: e.IsFault, Lanes: name}
	switch {
	case e.To != "":
		to, toName, err := laneOf(e.To)
		if err != nil {
			return traceEvent{}, err
		}
		drawn.Lanes += " to " + toName
		drawn.Path = arrow(from, to)
	case e.IsFault:
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
