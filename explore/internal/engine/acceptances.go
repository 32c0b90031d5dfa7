package engine

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/rules"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// ReadAcceptances returns the intended differences in a file of YAML or JSON, which is a list. An entry
// without a path accepts whole objects. The kinds of faults may be groups, as for [faults.ParseKinds]. Error: the
// file has another form, or an entry lacks its reason, names an unknown kind, or names neither objects nor a
// path.
func ReadAcceptances(path string) ([]finding.Acceptance, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []finding.Acceptance
	if err := yaml.UnmarshalStrict(data, &entries); err != nil {
		return nil, fmt.Errorf("%s is no list of intended differences: %w", path, err)
	}
	for i := range entries {
		if err := completeAcceptance(&entries[i]); err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, i+1, err)
		}
	}
	return entries, nil
}

// completeAcceptance fills in what an entry of a file leaves out, and returns an error if the entry is invalid.
func completeAcceptance(a *finding.Acceptance) error {
	if a.Path == "" && (a.Objects != "" || a.Rule != "") {
		a.Path = "*"
	}
	if _, exists := rules.DescriptionOf(a.Rule); a.Rule != "" && !exists {
		return fmt.Errorf("there is no rule %q: use one of %s", a.Rule, strings.Join(rules.Names(), ", "))
	}
	if _, err := history.NewAccepted(*a); err != nil {
		return err
	}
	var all []faults.Kind
	for _, name := range a.Faults {
		kinds, err := faults.ParseKinds(string(name))
		if err != nil {
			return err
		}
		all = append(all, kinds...)
	}
	a.Faults = all
	return nil
}

// ownAcceptances returns the differences that the faults themselves make.
func ownAcceptances() []finding.Acceptance {
	return []finding.Acceptance{
		{Path: "metadata.annotations[" + faults.ChangedAnnotation + "]", Reason: "the faults themselves write it"},
		{
			Objects: "*" + faults.UnreadableSuffix, Path: "*", Faults: []faults.Kind{faults.Unreadable},
			Reason: "the fault itself makes it",
		},
	}
}

// countedAcceptances returns the intended differences of the user that runs have shown, each with the number of
// comparisons, and the intended differences that no run has shown.
func countedAcceptances(accepted *history.Accepted) (used, unused []string) {
	for a, count := range accepted.All() {
		switch {
		case slices.ContainsFunc(ownAcceptances(), func(own finding.Acceptance) bool { return own.Reason == a.Reason }):
		case count == 0:
			unused = append(unused, a.String())
		case count == 1:
			used = append(used, a.String()+": once")
		default:
			used = append(used, fmt.Sprintf("%s: %d times", a, count))
		}
	}
	return used, unused
}
