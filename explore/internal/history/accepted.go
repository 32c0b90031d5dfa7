package history

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// Accepted are the differences that are intended. Its methods are safe for concurrent use. A nil
// *Accepted accepts nothing.
type Accepted struct {
	entries []finding.Acceptance
	// counts holds for each entry how many differences have matched the entry.
	counts []atomic.Int64
	// exempt holds the keys of type exemption.
	exempt sync.Map
}

// NewAccepted returns the Accepted of acceptances. Error: an acceptance has no path, or no reason.
func NewAccepted(acceptances ...finding.Acceptance) (*Accepted, error) {
	var errs []error
	for _, a := range acceptances {
		switch {
		case a.Path == "":
			errs = append(errs,
				fmt.Errorf("an accepted path is empty (its reason is %q): the path * is the whole object", a.Reason))
		case strings.TrimSpace(a.Reason) == "":
			errs = append(errs, fmt.Errorf("the accepted path %s has no reason", strings.TrimSpace(a.Objects+" "+a.Path)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Accepted{entries: slices.Clone(acceptances), counts: make([]atomic.Int64, len(acceptances))}, nil
}

// All returns each acceptance with the number of differences that have matched the acceptance.
func (a *Accepted) All() iter.Seq2[finding.Acceptance, int] {
	return func(yield func(finding.Acceptance, int) bool) {
		if a == nil {
			return
		}
		for i, entry := range a.entries {
			if !yield(entry, int(a.counts[i].Load())) {
				return
			}
		}
	}
}

// acceptDifference counts a difference for the acceptances that match it in a run with faults of these kinds. It
// reports whether the difference is intended. A reference run has no kinds. The path of a whole object is empty.
func (a *Accepted) acceptDifference(object faults.Object, path string, kinds ...faults.Kind) (isAccepted bool) {
	if a == nil {
		return false
	}
	_, accepted := a.exempt.Load(exemption{object, path})
	for i, entry := range a.entries {
		if entry.Rule == "" && isMatch(entry, object, path, kinds) {
			a.counts[i].Add(1)
			accepted = true
		}
	}
	return accepted
}

// AcceptViolation counts the violation of a rule for the acceptances that match it, and reports whether the violation
// is intended. An entry without a rule is for all rules.
func (a *Accepted) AcceptViolation(
	rule string, object faults.Object, path string, kinds ...faults.Kind,
) (isAccepted bool) {
	if a == nil {
		return false
	}
	accepted := false
	for i, entry := range a.entries {
		if (entry.Rule == "" || entry.Rule == rule) && isMatch(entry, object, path, kinds) {
			a.counts[i].Add(1)
			accepted = true
		}
	}
	return accepted
}

// Exempt accepts differences that must not count because a rule has shown that the references are wrong there. The path
// of a whole object is empty. Violations of rules are not accepted.
func (a *Accepted) Exempt(object faults.Object, path string) {
	a.exempt.Store(exemption{object, path}, true)
}

// exemption is an object or a field for [Accepted.Exempt].
type exemption struct {
	object faults.Object
	path   string
}

// isMatch reports whether an acceptance covers a difference in a run with faults of these kinds.
func isMatch(a finding.Acceptance, object faults.Object, path string, kinds []faults.Kind) bool {
	isKind := func(k faults.Kind) bool { return slices.Contains(a.Faults, k) }
	switch {
	case len(a.Faults) > 0 && !slices.ContainsFunc(kinds, isKind):
		return false
	case a.Objects != "" && !matches(a.Objects, `(/.*)?`, object.String()):
		return false
	}
	return a.Path == "*" || path != "" && matches(a.Path, `([.\[].*)?`, path)
}

// matches reports whether text matches a pattern, in which an asterisk stands for any text. The end of the text may
// match a regular expression.
func matches(pattern, end, text string) bool {
	ok, err := regexp.MatchString("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")+end+"$", text)
	return err == nil && ok
}
