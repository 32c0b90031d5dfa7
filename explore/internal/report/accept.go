package report

import (
	"slices"
	"strings"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/kube"
)

// acceptLines returns the lines of a file of intended differences that accept a finding. The reasons are left
// empty. A finding that is not about objects has no lines.
func acceptLines(f finding.Finding) []string {
	switch f.Verdict {
	case finding.Destroyed, finding.Wrong, finding.NeedsRestart, finding.GaveUp, finding.BreaksRule, finding.MayBreakRule:
	default:
		return nil
	}
	var kinds []string
	for _, fault := range f.Schedule.Faults {
		if kind := string(fault.Kind); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = []string{"transition"}
	}
	var lines []string
	for i, d := range f.Differences {
		isRepeated := slices.ContainsFunc(f.Differences[:i], d.IsSame)
		isAboutWrite := f.Verdict == finding.GaveUp && d.Reason != ""
		if d.Object == "" || d.Check != "" || isRepeated || isAboutWrite {
			continue
		}
		path := d.Path
		if path == "" {
			path = "*"
		}
		lines = append(lines, "- objects: "+quoted(d.Object), "  path: "+quoted(path))
		if f.Rule != "" {
			lines = append(lines, "  rule: "+quoted(f.Rule), `  reason: ""`)
			continue
		}
		lines = append(lines, "  faults: ["+strings.Join(kinds, ", ")+"]", `  reason: ""`)
	}
	return lines
}

// quoted returns text as YAML.
func quoted(text string) string {
	quoted, err := kube.Marshal(text) // what is JSON is YAML
	if err != nil {
		return ""
	}
	return string(quoted)
}
