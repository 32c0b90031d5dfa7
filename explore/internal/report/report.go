// Package report writes the record of an exploration: [Text] for a terminal, [HTML] for a browser, and [WriteFile] to
// a file. [ReadFile] reads a record for a replay.
//
// A report begins with a line that counts the findings. The findings follow, with the warnings last, and then the
// coverage:
//
//	webapp: 1 finding
//
//	1. wrong, seen in 3 of 3 runs
//	   The state after a step differs from that of the reference runs, and stays so, also after a restart of the program.
//	   steps
//	     1. apply the samples (WebApp web)
//	   faults
//	     crash after the last write of step 1, restart at once
//	   differences after step 1
//	     deployments.apps/web spec.replicas
//	       want 2
//	       got  1
//
//	coverage
//	  75 runs in 45s with seed 1, among them 3 reference runs and 2 repeats. All planned runs were made.
//	  runs with crash   12 of 12
//
// Texts of objects cannot control the terminal or the page: invisible characters are replaced, and the page has no
// scripts.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// functions returns the functions of both templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"summary": summary, "sortedFindings": sortedFindings, "findingTitle": findingTitle,
		"meaning": meaning, "describeSteps": describeSteps,
		"acceptLines": acceptLines, "runSummary": runSummary, "coverageCounts": coverageCounts,
		"coverageLists": coverageLists, "join": strings.Join,
		"ordinal":           func(index int) int { return index + 1 },
		"indented":          func(indent, text string) string { return strings.ReplaceAll(text, "\n", "\n"+indent) },
		"differenceSubject": differenceSubject, "shortValue": shortValue, "eventLines": eventLines, "compact": compact,
		"indentedValue": indentedValue, "indentedJSON": indentedJSON,
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

// sortedFindings returns the findings with the warnings last.
func sortedFindings(r finding.Record) []finding.Finding {
	return slices.SortedStableFunc(slices.Values(r.Findings), func(a, b finding.Finding) int {
		return rank(a) - rank(b)
	})
}

// rank returns 1 for a warning, and 0 for any other finding.
func rank(f finding.Finding) int {
	if f.IsWarning() {
		return 1
	}
	return 0
}

// summary returns how many findings and warnings the record has, and how much of the samples had another value in a
// run.
func summary(r finding.Record) string {
	changed := ""
	if fields := r.Coverage.Fields; fields.Total > 0 {
		changed = fmt.Sprintf("; %d of %s of the samples changed", fields.Done, counted(fields.Total, "field"))
	}
	return countsText(r) + changed
}

// countsText returns how many findings and warnings the record has. An exploration that has not tried each kind does
// not count as an exploration that found nothing.
func countsText(r finding.Record) string {
	failures := r.CountFailures()
	warnings := len(r.Findings) - failures
	var parts []string
	if failures > 0 {
		parts = append(parts, counted(failures, "finding"))
	}
	if warnings > 0 {
		parts = append(parts, counted(warnings, "warning"))
	}
	c := r.Coverage
	if c.Stopped != "" && len(parts) == 0 {
		return "not explored"
	}
	if c.Stopped != "" {
		return strings.Join(append(parts, "and the exploration could not go on"), ", ")
	}
	if len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	switch {
	case len(c.Warnings) > 0:
		return "nothing found, but the exploration proves little: see the warnings"
	case len(c.NeverHappened) > 0:
		return "incomplete, nothing found so far, and these kinds never happened: " + strings.Join(kindLines(c.NeverHappened),
			", ")
	case !c.IsComplete:
		return "nothing found so far: each kind has happened, but not all planned runs were made"
	}
	return "nothing found"
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// findingTitle returns the heading of a finding. Numbers count from 1.
func findingTitle(number int, f finding.Finding) string {
	severity := ""
	switch {
	case f.IsUnconfirmed:
		severity = " (the time ended before it was confirmed)"
	case f.Verdict.IsWarning():
		severity = " (a warning)"
	}
	what := string(f.Verdict)
	if f.Rule != "" {
		what = f.Rule + ": " + f.Summary
	}
	return fmt.Sprintf("%d. %s%s, seen in %d of %s", number, what, severity, f.Seen, counted(f.Tries, "run"))
}

// meaning returns a sentence that explains the verdict of a finding, or the rule.
func meaning(f finding.Finding) string {
	if d, exists := rules.DescriptionOf(f.Rule); exists {
		return d.Meaning
	}
	return map[finding.Verdict]string{
		finding.Destroyed:     "An object was deleted, was created twice, or lost a value. No reference run did that.",
		finding.Exited:        "The program ended by itself.",
		finding.Wrong:         "The state after a step differs from that of the reference runs, and stays so, also after a restart of the program.",
		finding.NeedsRestart:  "The state after a step was wrong until the program was restarted.",
		finding.Late:          "The state after a step became right, but later than the reference runs allow.",
		finding.Busy:          "The program never came to rest.",
		finding.CheckFailed:   "A check of the test failed.",
		finding.GaveUp:        "A write was denied for a time, and the program has not made it again.",
		finding.TwoLeaders:    "A former leader wrote after another replica had taken the lease.",
		finding.Reread:        "An object was read again in one version, or read and written back, and was not the same. Nobody had changed it.",
		finding.NeverHeld:     "A condition of the test held in no version of any run.",
		finding.ChangesAtRest: "The program changed something at rest: when time passed, when it was started again, or when a tool applied the samples as they were.",
	}[f.Verdict]
}

// describeSteps returns the text of each step: see [describeStep].
func describeSteps(steps []finding.Step) (texts []string) {
	applied := make(map[string]any) // the latest content of each object, by its kind and name
	for _, s := range steps {
		texts = append(texts, describeStep(s, applied))
	}
	return texts
}

// describeStep returns the name of a step and what the user does in the step. A name that begins with the only
// verb of the step is not followed by the verb again. applied has the objects that the user has applied in earlier
// steps. describeStep says which of their fields differ, and adds the objects of the step.
func describeStep(s finding.Step, applied map[string]any) string {
	var names, changes, deleted []string
	for _, object := range s.Apply {
		name := kindAndName(object)
		names = append(names, name)
		var content any
		if err := kube.Unmarshal(object, &content); err != nil {
			continue // the name says it
		}
		if former, isKnown := applied[name]; isKnown && strings.HasPrefix(name, "Secret ") {
			if !reflect.DeepEqual(former, content) {
				changes = append(changes, "another content") // a report shows no value of a Secret
			}
		} else if isKnown {
			changes = append(changes, changedFields("", former, content)...)
		}
		applied[name] = content
	}
	for _, object := range s.Delete {
		deleted = append(deleted, object.String())
	}
	names = countRepeated(names)
	text := strings.TrimPrefix(s.Name+": ", ": ")
	switch {
	case len(deleted) == 0 && strings.HasPrefix(s.Name, "apply "):
		text = fmt.Sprintf("%s (%s)", s.Name, strings.Join(names, ", "))
	case len(names) == 0 && strings.HasPrefix(s.Name, "delete "):
		text = fmt.Sprintf("%s (%s)", s.Name, strings.Join(deleted, ", "))
	case len(names) > 0 && len(deleted) > 0:
		text += "apply " + strings.Join(names, ", ") + "; delete " + strings.Join(deleted, ", ")
	case len(names) > 0:
		text += "apply " + strings.Join(names, ", ")
	case len(deleted) > 0:
		text += "delete " + strings.Join(deleted, ", ")
	}
	if more := len(changes) - maxShownChanges; more > 0 {
		changes = append(changes[:maxShownChanges], fmt.Sprintf("and %d more", more))
	}
	if len(changes) > 0 {
		text += ", with " + strings.Join(changes, ", ")
	}
	return text
}

// countRepeated returns texts in which equal texts in a row are one text with their number. Example: "Site web" three
// times gives "Site web (3 times)".
func countRepeated(texts []string) (counted []string) {
	for begin := 0; begin < len(texts); {
		end := begin + 1
		for end < len(texts) && texts[end] == texts[begin] {
			end++
		}
		text := texts[begin]
		if times := end - begin; times > 1 {
			text = fmt.Sprintf("%s (%d times)", text, times)
		}
		counted = append(counted, text)
		begin = end
	}
	return counted
}

const (
	// maxShownChanges is how many changed fields the text of a step has.
	maxShownChanges = 4
	// maxShownChange is how many characters of a value the text of a step has.
	maxShownChange = 40
)

// changedFields returns a text for each field that has another value in the second content, by the path. Example: the
// contents {"spec":{"size":1}} and {"spec":{"size":3,"text":"a"}} give "spec.size 1 -> 3" and "spec.text "a"". Lists
// are compared as a whole.
func changedFields(path string, before, after any) (texts []string) {
	old, isObject := before.(map[string]any)
	now, isStillObject := after.(map[string]any)
	if !isObject || !isStillObject {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []string{fmt.Sprintf("%s %s -> %s", path, shortJSON(before), shortJSON(after))}
	}
	all := maps.Clone(old)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		child := strings.TrimPrefix(path+"."+name, ".")
		first, wasThere := old[name]
		second, isThere := now[name]
		switch {
		case !wasThere:
			texts = append(texts, child+" "+shortJSON(second))
		case !isThere:
			texts = append(texts, "no "+child)
		default:
			texts = append(texts, changedFields(child, first, second)...)
		}
	}
	return texts
}

// shortJSON returns the first characters of a value in JSON.
func shortJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return shorten(string(text), maxShownChange)
}

// minRepeated is how many equal characters in a row [compact] counts.
const minRepeated = 20

// compact returns a text in which the number of equal characters in a row stands in braces if there are many of them,
// as in names that explorations make long. Example: "web-" and 57 times "l" give "web-l{57}".
func compact(text string) string {
	var b strings.Builder
	characters := []rune(text)
	for begin := 0; begin < len(characters); {
		end := begin + 1
		for end < len(characters) && characters[end] == characters[begin] {
			end++
		}
		if length := end - begin; length >= minRepeated {
			fmt.Fprintf(&b, "%c{%d}", characters[begin], length)
		} else {
			b.WriteString(string(characters[begin:end]))
		}
		begin = end
	}
	return b.String()
}

// shorten returns the first characters of a text, and an ellipsis in place of the others.
func shorten(text string, length int) string {
	if characters := []rune(text); len(characters) > length {
		return string(characters[:length]) + "…"
	}
	return text
}

// kindAndName returns the kind and the name of an object.
func kindAndName(object json.RawMessage) string {
	var meta struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(object, &meta); err != nil {
		return "an object that is not valid: " + err.Error()
	}
	return meta.Kind + " " + meta.Metadata.Name
}

// coverageCount is a row of the coverage.
type coverageCount struct {
	Name string
	finding.Count
}

// IsShort reports whether less was done than planned.
func (c coverageCount) IsShort() bool { return c.Done < c.Total }

// coverageCounts returns the rows of the coverage, each with its denominator.
func coverageCounts(c finding.Coverage) []coverageCount {
	rows := []coverageCount{
		{"writes before which the program crashed", c.Points},
		{"fields that had another value", c.Fields},
		{"transitions that the user made", c.Transitions},
	}
	if c.Conditions.Total > 0 {
		rows = append(rows, coverageCount{"conditions that held sometimes", c.Conditions})
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		rows = append(rows, coverageCount{"runs with " + string(kind), c.Kinds[kind]})
	}
	return rows
}

// runSummary returns how much was run.
func runSummary(c finding.Coverage) string {
	end := "All planned runs were made."
	if !c.IsComplete {
		end = "The budget ended before all planned runs were made."
	}
	return fmt.Sprintf("%s in %s with seed %d, among them %s and %s. %s",
		counted(c.Runs, "run"), c.Took.Round(100*time.Millisecond), c.Seed,
		counted(c.References, "reference run"), counted(c.Repeats, "repeat"), end)
}

// coverageList is a part of the coverage: lines below a title.
type coverageList struct {
	Title string
	Lines []string
}

// coverageLists returns what the exploration did not cover, with reasons. Empty lists are left out.
func coverageLists(c finding.Coverage) []coverageList {
	all := []coverageList{
		{"Findings that no run of the replay has shown", c.NotSeenAgain},
		{"Writes at which no fault happened, because the other reference runs did not make them", c.Unrepeated},
		{"Notes of rules: what may be right or wrong", c.Notes},
		{"Objects that the program deleted, and made again with other content", c.Recreated},
		{"Kinds of faults that never happened", kindLines(c.NeverHappened)},
		{"Runs that could not be made", c.FailedRuns},
		{"Faults that did not happen in three tries", c.NotReached},
		{"Changes after which only there and back again was compared", c.Uncompared},
		{"Objects that wait for a finalizer after the user has deleted them", c.Waiting},
		{"Kinds of faults that are not applicable", withReasons(c.NotApplicable)},
		{"Writes that the API server found invalid, which the program reported, and recovered from", c.RefusedWrites},
		{"Fields that had no other value", withReasons(c.FieldsWithoutValues)},
		{"Fields that are not compared, because they differ between reference runs", c.Masked},
		{"Intended differences that runs have shown", c.Acceptances},
		{"Intended differences that no run has shown", c.UnusedAcceptances},
		{"Writes in other namespaces, which were refused", c.OutOfBounds},
		{"Writes of objects in no namespace, which are not compared", c.ClusterScoped},
		{"Statements that have run, without processes that crashed", statements(c.Statements)},
	}
	return slices.DeleteFunc(all, func(l coverageList) bool { return len(l.Lines) == 0 })
}

// kindLines returns a line for each kind.
func kindLines(kinds []faults.Kind) (lines []string) {
	for _, k := range kinds {
		lines = append(lines, string(k))
	}
	return lines
}

// statements returns a line for each package, sorted by name.
func statements(packages map[string]finding.Count) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		c := packages[name]
		lines = append(lines, fmt.Sprintf("%s: %d of %d (%.0f %%)",
			name, c.Done, c.Total, 100*float64(c.Done)/float64(max(c.Total, 1))))
	}
	return lines
}

// withReasons returns a line for each name, sorted by name.
func withReasons[K ~string](reasons map[K]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		lines = append(lines, fmt.Sprintf("%s: %s", name, reasons[name]))
	}
	return lines
}

// replaceInvisible replaces the characters that a reader does not see. Text of an object could
// otherwise control a terminal, or change the order in which a line is read.
func replaceInvisible(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
