package engine

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
)

// fewPages fails in a state with more than one page.
func fewPages(s history.State) error {
	if len(s.Objects()) > 1 {
		return errors.New("there are two pages")
	}
	return nil
}

// twoPages is the outcome of a run that makes two pages.
func twoPages() *runResult {
	page := func(name, version string) history.Version {
		return history.Version{
			Resource: "configmaps", Name: name, UID: types.UID(name), ResourceVersion: version, At: time.Now(), Object: map[string]any{},
		}
	}
	return &runResult{began: time.Now(), history: history.History{Versions: []history.Version{page("a", "1"), page("b", "2")}}}
}

// A check that fails in a history is a finding with the object, and replaces a warning.
func TestChecksOfAHistory(t *testing.T) {
	t.Parallel()
	c := newChecks([]Check{
		{Name: "few", Moment: Always, Verify: fewPages},
		{Name: "many", Moment: Sometimes, Verify: func(s history.State) error {
			if len(s.Objects()) > 2 {
				return nil
			}
			return errors.New("at most two")
		}},
	})
	out := twoPages()
	out.verdict = finding.Late
	c.checkHistory(out)
	if out.verdict != finding.CheckFailed || !out.hasFailedCheck || len(out.differences) != 1 || out.differences[0].Object != "configmaps/b" {
		t.Errorf("the problem is %q: %v", out.verdict, out.differences)
	}
	if total, unheld := c.conditions(); total != 1 || len(unheld) != 1 || unheld[0].Reason != "at most two" {
		t.Errorf("of %d conditions these have not held: %v", total, unheld)
	}
}

// A check that fails without faults is reported once.
func TestChecksThatFailInReferences(t *testing.T) {
	t.Parallel()
	c := newChecks([]Check{{Name: "few", Moment: Always, Verify: fewPages}})
	if f := c.checkReferences([]*runResult{twoPages(), twoPages()}); f.Seen != 2 || f.Tries != 2 {
		t.Errorf("the check has failed in %d of %d references", f.Seen, f.Tries)
	}
	out := twoPages()
	if c.checkHistory(out); out.verdict != "" {
		t.Errorf("the check has failed again: %v", out.differences)
	}
	c.includeFailed()
	if c.checkHistory(out); out.verdict != finding.CheckFailed {
		t.Error("the check is left out after includeFailed")
	}
}

// Checks that fail in different references are all reported once. Only those of the last reference were.
func TestChecksThatFailInDifferentReferences(t *testing.T) {
	t.Parallel()
	calls := 0
	c := newChecks([]Check{{Name: "few", Moment: Always, Verify: fewPages}, {Name: "once", Moment: Always, Verify: func(history.State) error {
		if calls++; calls == 1 { // in the first reference alone
			return errors.New("once")
		}
		return nil
	}}})
	if f := c.checkReferences([]*runResult{twoPages(), twoPages()}); len(f.Differences) != 2 {
		t.Errorf("the checks that have failed are %v", f.Differences)
	}
}

func TestChecksAtRest(t *testing.T) {
	t.Parallel()
	state := twoPages().history.State()
	c := newChecks([]Check{{Name: "rest", Moment: AtRest, Verify: fewPages}, {Name: "end", Moment: AtEnd, Verify: fewPages}})
	if failed := c.checkRest(0, false, state); len(failed) != 1 || failed[0].Check != "rest" {
		t.Errorf("after a step these checks fail: %v", failed)
	}
	if failed := c.checkRest(1, true, state); len(failed) != 2 {
		t.Errorf("after the last step these checks fail: %v", failed)
	}
}
