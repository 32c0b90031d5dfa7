package feature

import (
	"slices"
	"strings"
	"testing"
)

// A line that Names does not understand would make its flag unknown to all programs.
func TestEachLineOfTheTableIsAName(t *testing.T) {
	t.Parallel()
	names, lines := Names(), 0
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			lines++
			if !slices.Contains([]string{"flag", "ignored", "command"}, fields[0]) {
				t.Errorf("the line %q has no known use", line)
			}
		}
	}
	if len(names) != lines || lines == 0 {
		t.Errorf("%d of %d lines are names: each has six columns", len(names), lines)
	}
	if i := slices.IndexFunc(names, func(n Name) bool { return n.Package == "" || n.Name == "" }); i >= 0 {
		t.Errorf("the name %d is %+v", i, names[i])
	}
}
