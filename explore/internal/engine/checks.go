package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
)

// Moment is when a check of the user's own is made.
type Moment int

// The moments.
const (
	// Always is at every version of every object.
	Always Moment = iota
	// Sometimes is at every version too. The check must hold once in the whole exploration.
	Sometimes
	// AtRest is at the rest after each step, and AtEnd at the rest after the last one.
	AtRest
	AtEnd
)

// Check is a check of the user's own.
type Check struct {
	Name   string
	Moment Moment
	// Verify returns why the check does not hold in a state, or nil. Runs are concurrent, and so are the
	// calls.
	Verify func(history.State) error
}

// checks makes the checks of the user. Its methods are safe for concurrent use.
type checks struct {
	all []Check

	// mu guards the maps, whose keys are the indices of the checks.
	mu sync.Mutex
	// hasFailed is set for checks that have failed in a reference run. They are reported once.
	hasFailed map[int]bool
	// hasHeld is set for conditions that have held in a version. failures holds why the others have not held.
	hasHeld  map[int]bool
	failures map[int]error
}

func newChecks(all []Check) *checks {
	return &checks{all: all, hasFailed: make(map[int]bool), hasHeld: make(map[int]bool), failures: make(map[int]error)}
}

// checkRest makes the checks at the rest after a step.
func (c *checks) checkRest(step int, isLast bool, state history.State) (failed []finding.Difference) {
	for _, check := range c.all {
		if check.Moment != AtRest && (check.Moment != AtEnd || !isLast) {
			continue
		}
		if err := check.Verify(state); err != nil {
			failed = append(failed,
				finding.Difference{Check: check.Name, Reason: fmt.Sprintf("at rest after step %d: %v", step+1, err)})
		}
	}
	return failed
}

// checkHistory makes the checks at every version of a run. A failure replaces a warning, and is added to the
// differences of any other verdict.
func (c *checks) checkHistory(out *runResult) {
	pending := c.pending()
	if len(pending) == 0 {
		return
	}
	var failed []finding.Difference
	for v, state := range out.history.States() {
		for i, check := range pending {
			err := check.Verify(state)
			switch {
			case check.Moment == Sometimes:
				c.recordCondition(i, err)
				if err == nil {
					delete(pending, i)
				}
			case err != nil:
				delete(pending, i)
				failed = append(failed, recordFailedCheck(check, v, state, err, out))
			}
		}
	}
	if len(failed) == 0 {
		return
	}
	out.hasFailedCheck = true
	if out.verdict == "" || out.verdict.IsWarning() {
		out.verdict, out.differences = finding.CheckFailed, nil
	}
	out.differences = append(out.differences, failed...)
}

// pending returns the checks to make at every version, by their indices: the checks not failed by any reference, and
// the conditions that have not held.
func (c *checks) pending() map[int]Check {
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := make(map[int]Check)
	for i, check := range c.all {
		if check.Moment == Always && !c.hasFailed[i] || check.Moment == Sometimes && !c.hasHeld[i] {
			pending[i] = check
		}
	}
	return pending
}

// recordCondition records whether a condition has held.
func (c *checks) recordCondition(i int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.hasHeld[i] = true
	} else {
		c.failures[i] = err
	}
}

// checkReferences makes the checks in the reference runs. It returns the finding of the checks that fail there, and
// leaves these checks out from now on. Tries is the number of references, and Seen the number of those that fail.
func (c *checks) checkReferences(references []*runResult) (f finding.Finding) {
	f.Verdict = finding.CheckFailed
	for _, out := range references {
		if len(out.history.Gaps) > 0 {
			continue
		}
		c.checkHistory(out)
		f.Tries++
		if out.hasFailedCheck {
			f.Seen++
			f.Trace = out.trace
			for _, d := range out.differences {
				if !slices.ContainsFunc(f.Differences, d.IsSame) {
					f.Differences = append(f.Differences, d)
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, check := range c.all {
		c.hasFailed[i] = slices.ContainsFunc(f.Differences, func(d finding.Difference) bool { return d.Check == check.Name })
	}
	return f
}

// includeFailed ends the exclusion of the checks that have failed in the references.
func (c *checks) includeFailed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.hasFailed)
}

// conditions returns the number of conditions, and a difference for each condition that has held in no run. The reason
// is why the condition did not hold in the last version.
func (c *checks) conditions() (total int, unheld []finding.Difference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, check := range c.all {
		if check.Moment != Sometimes {
			continue
		}
		total++
		if !c.hasHeld[i] {
			reason := "no version was checked"
			if err := c.failures[i]; err != nil {
				reason = err.Error()
			}
			unheld = append(unheld, finding.Difference{Check: check.Name, Reason: reason})
		}
	}
	return total, unheld
}

// recordFailedCheck records in the trace of a run that a check has failed, and returns the difference.
func recordFailedCheck(c Check, v history.Version, state history.State, err error, out *runResult) finding.Difference {
	at, object := v.At.Sub(out.began), state.ObjectOf(v).String()
	event := finding.Event{
		At: at, Step: v.Step, Lane: finding.Server, Text: fmt.Sprintf("the check %q fails: %v", c.Name, err),
	}
	out.trace = append(out.trace, event)
	slices.SortStableFunc(out.trace, func(a, b finding.Event) int { return cmp.Compare(a.At, b.At) })
	if out.verdict == "" {
		out.verdictStep = max(v.Step, 0)
	}
	return finding.Difference{
		Object: object, Check: c.Name,
		Reason: fmt.Sprintf("in step %d, %.3f s after the start, when %s had the resource version %s: %v",
			v.Step+1, at.Seconds(), object, v.ResourceVersion, err),
	}
}
