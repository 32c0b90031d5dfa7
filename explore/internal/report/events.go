package report

import (
	"fmt"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
)

const (
	// maxStepEvents is how many events of a step the text shows.
	maxStepEvents = 14
	// lastShownSteps is how many of the last steps the text shows in any case.
	lastShownSteps = 2
)

// eventLines returns a line for each event of a finding, in the order of time. The lines begin with the step of the first fault,
// or with the last two steps if these begin earlier. The deliveries on watches are left out. If a step has more than
// maxStepEvents other events, the middle events of the step are only counted. Example of a line:
//
//	1.204 s  step 2  operator: delete configmaps web (content 6cd6, occurrence 1) → 200
func eventLines(f finding.Finding) (lines []string) {
	first := len(f.Schedule.Steps) - lastShownSteps
	for _, e := range f.Trace {
		if e.IsFault {
			first = min(first, e.Step)
			break
		}
	}
	var events []finding.Event // those of one step
	for i, e := range f.Trace {
		if i > 0 && e.Step != f.Trace[i-1].Step {
			lines = append(lines, stepLines(events)...)
			events = nil
		}
		if isDelivery := e.Lane == finding.Server && e.To == finding.Operator && !e.IsFault; !isDelivery && e.Step >= first {
			events = append(events, e)
		}
	}
	return append(lines, stepLines(events)...)
}

// stepLines returns the lines of the events of a step.
func stepLines(events []finding.Event) (lines []string) {
	left := len(events) - maxStepEvents
	for i, e := range events {
		switch first := maxStepEvents / 2; {
		case left <= 0 || i < first || i >= first+left:
			lines = append(lines, eventLine(e))
		case i == first:
			lines = append(lines, fmt.Sprintf("           %d more events", left))
		}
	}
	return lines
}

// eventLine returns an event in a line. The line has the step only once.
func eventLine(e finding.Event) string {
	when := "start "
	if e.Step >= 0 {
		when = fmt.Sprintf("step %d", e.Step+1)
	}
	actor := string(e.Lane)
	if e.IsFault {
		actor = "fault"
	}
	text := strings.Replace(e.Text, "("+when+", ", "(", 1)
	return fmt.Sprintf("%7.3f s  %s  %s: %s", e.At.Seconds(), when, actor, shorten(compact(text), maxValueLength))
}
