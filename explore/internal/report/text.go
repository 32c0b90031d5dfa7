package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/yare-go/yare/explore/internal/finding"
)

// maxValueLength is how many characters of a value the text shows.
const maxValueLength = 160

// Text writes the findings of a record, and then its coverage.
func Text(w io.Writer, r finding.Record) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", r.Coverage.Operator, summary(r))
	for _, warning := range r.Coverage.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for i, f := range sortedFindings(r) {
		writeFinding(&b, i+1, f)
	}
	writeCoverage(&b, r.Coverage)
	_, err := w.Write(replaceInvisible(b.Bytes()))
	return err
}

func writeFinding(b *bytes.Buffer, number int, f finding.Finding) {
	fmt.Fprintf(b, "\n%s\n   %s\n", title(number, f), meaning(f.Verdict))
	fmt.Fprintf(b, "   steps\n")
	for i, step := range f.Schedule.Steps {
		fmt.Fprintf(b, "     %d. %s\n", i+1, describeStep(step))
	}
	if len(f.Schedule.Faults) > 0 {
		fmt.Fprintf(b, "   faults\n")
	}
	for _, fault := range f.Schedule.Faults {
		fmt.Fprintf(b, "     %s\n", fault)
	}
	if len(f.Differences) > 0 {
		fmt.Fprintf(b, "   differences\n")
	}
	for _, d := range f.Differences {
		writeDifference(b, d)
	}
	if lines := acceptLines(f); len(lines) > 0 {
		fmt.Fprintf(b, "   if this is intended, add this to the file of --accept, with the reason\n     %s\n", strings.Join(lines, "\n     "))
	}
}

func writeDifference(b *bytes.Buffer, d finding.Difference) {
	fmt.Fprintf(b, "     %s\n", heading(d))
	if d.Reason != "" {
		fmt.Fprintf(b, "       %s\n", strings.ReplaceAll(d.Reason, "\n", "\n       "))
		return
	}
	fmt.Fprintf(b, "       want %s\n       got  %s\n", shortValue(d.Want), shortValue(d.Got))
}

// heading returns the subject of a difference.
func heading(d finding.Difference) string {
	if d.Check != "" {
		return "check " + d.Check
	}
	return strings.TrimSpace(d.Object + " " + d.Path)
}

// shortValue returns the beginning of a JSON value, or "nothing" if there is no value.
func shortValue(value string) string {
	if value == "" {
		return "nothing"
	}
	if characters := []rune(value); len(characters) > maxValueLength {
		return string(characters[:maxValueLength]) + "…"
	}
	return value
}

func writeCoverage(b *bytes.Buffer, c finding.Coverage) {
	fmt.Fprintf(b, "\ncoverage\n  %s\n", runs(c))
	table := tabwriter.NewWriter(b, 0, 0, 1, ' ', 0)
	for _, row := range counts(c) {
		fmt.Fprintf(table, "  %s\t%d of %d\n", row.Name, row.Done, row.Total)
	}
	fmt.Fprintf(table, "  transitions that the API server refused\t%d of %d\n", c.Refused, c.Transitions.Total)
	_ = table.Flush() // a buffer returns no errors
	for _, l := range lists(c) {
		fmt.Fprintf(b, "  %s\n", l.Title)
		for _, line := range l.Lines {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
}
