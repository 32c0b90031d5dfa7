package report

import (
	"fmt"

	"github.com/yare-go/yare/explore/internal/finding"
)

// maxStepEvents is how many events of a step the text shows.
const maxStepEvents = 14

// eventLines returns a line for each event of a finding, in the order of time. The deliveries on watches are left out. If a step
// has more than maxStepEvents other events, the middle events of the step are only counted. Example of a line:
//
//	  1.204 s  step 2  operator: delete configmaps web (step 2, occurrence 1) → 200
func eventLines(f finding.Finding) (lines []string) {
	var events []finding.Event // those of one step
	for i, e := range f.Trace {
		if i > 0 && e.Step != f.Trace[i-1].Step {
			lines = append(lines, stepLines(events)...)
			events = nil
		}
		if e.Lane != finding.Server || e.To != finding.Operator || e.IsFault {
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

// eventLine returns an event in a line.
func eventLine(e finding.Event) string {
	when := "start "
	if e.Step >= 0 {
		when = fmt.Sprintf("step %d", e.Step+1)
	}
	actor := string(e.Lane)
	if e.IsFault {
		actor = "fault"
	}
	return fmt.Sprintf("%7.3f s  %s  %s: %s", e.At.Seconds(), when, actor, shorten(e.Text, maxValueLength))
}
