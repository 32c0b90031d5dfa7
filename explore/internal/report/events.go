package report

import (
	"fmt"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
)

const (
	// maxStepEvents is how many events of a step the text shows.
	maxStepEvents = 20
	// maxLines is how many lines the text has. Only the steps from the first fault on may have more.
	maxLines = 40
)

// eventLines returns a line for each event of a finding, in the order of time. All steps from the first fault on are
// shown. Earlier steps are shown as long as the lines are fewer than maxLines. The deliveries on watches are left out,
// and so is what the control plane makes in a new namespace. If a step has more than maxStepEvents other events, the
// middle events of the step are only counted. Example of a line:
//
//	1.204 s  step 2  operator: delete configmaps web (content 6cd6, occurrence 1) → 200
func eventLines(f finding.Finding) (lines []string) {
	var steps [][]finding.Event // by the steps with events
	firstWithFault := -1
	for i, e := range f.Trace {
		if i == 0 || e.Step != f.Trace[i-1].Step {
			steps = append(steps, nil)
		}
		last := len(steps) - 1
		if e.IsFault && firstWithFault < 0 {
			firstWithFault = last
		}
		if isOfServer := e.Lane == finding.Server && !e.IsFault; !isOfServer || e.To != finding.Operator && e.Step >= 0 {
			steps[last] = append(steps[last], e)
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		earlier := stepLines(steps[i])
		if (firstWithFault < 0 || i < firstWithFault) && len(earlier)+len(lines) > maxLines {
			break
		}
		lines = append(earlier, lines...)
	}
	return lines
}

// stepLines returns the lines of the events of a step.
func stepLines(events []finding.Event) (lines []string) {
	omitted := len(events) - maxStepEvents
	for i, e := range events {
		switch first := maxStepEvents / 2; {
		case omitted <= 0 || i < first || i >= first+omitted:
			lines = append(lines, eventLine(e))
		case i == first:
			lines = append(lines, fmt.Sprintf("           %d more events", omitted))
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
