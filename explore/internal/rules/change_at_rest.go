package rules

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// changeAtRest is the rule "at rest": a program makes no change without a cause, and does not write a list in another
// order.
type changeAtRest struct{}

func (changeAtRest) Describe() Description {
	return Description{
		Name: "at rest", Meaning: "The program changed an object again and again, and nothing had happened.", IsCertain: true,
	}
}

// minRest is how long a process has written nothing before a change without a cause. A change that comes earlier may
// follow from the program's own write, which the program has just received, or belong to the same reconcile.
const minRest = time.Second

func (changeAtRest) Violations(r *Run) []Violation {
	if !r.isOrdinary() {
		return nil
	}
	return append(changesWithoutCause(r), changesOfOrder(r)...)
}

// changesWithoutCause returns the changes of an object that follow another change of the same fields by the same
// process, although the process has received nothing in between but its own writes. A change of times alone is a note.
//
// Example: a process writes status.checks=1 at 0 s, receives that version, and writes status.checks=2 at 10 s. The
// second write has no cause. A write that follows an answer to a read with other versions has a cause. So has the first
// write after a failed request, and a write at a time that an object names.
//
// A run whose fault is in the external system is not judged: what the program then learns there is a cause that nobody
// sees.
func changesWithoutCause(r *Run) (all []Violation) {
	if r.Faults.HasKind(faults.OutsideRefused, faults.OutsideCut, faults.OutsideSlow) {
		return nil
	}
	changes := make(map[*proxy.RequestRecord]successor)
	for _, s := range r.successors() {
		if request := r.writeOf(s); request != nil {
			changes[request] = s
		}
	}
	ownVersions := r.ownVersions()
	type writeKey struct {
		session string
		uid     types.UID
	}
	type write struct {
		ended time.Time
		paths []string
	}
	last := make(map[writeKey]write)
	isReported := make(map[types.UID]bool)
	for i := range r.Requests {
		request := &r.Requests[i]
		change, isStored := changes[request]
		if !isStored || request.Code/100 != 2 || proxy.IsBackground(request.Point.Resource) {
			continue
		}
		key := writeKey{request.Session, change.after.UID}
		paths := changedPaths(r.View, change)
		former, hasFormer := last[key]
		last[key] = write{request.Ended, paths}
		isSame := hasFormer && (len(paths) == 0 && len(former.paths) == 0 ||
			slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(former.paths, p) }))
		if !isSame || isReported[change.after.UID] ||
			longestQuiet(r, request.Session, former.ended, request.Began) < minRest ||
			hasCause(r, request.Session, former.ended, request.Began, ownVersions, change.before) {
			continue
		}
		isReported[change.after.UID] = true
		object := r.Object(change.after)
		v := Violation{
			Severity: Warning, Object: object, Paths: paths, Effect: "changed", Step: request.Point.Step, At: request.Began,
			Text: fmt.Sprintf("%s was changed without a cause", object),
			Evidence: fmt.Sprintf(
				"The program sent %s, %.1f s after its write before. It had received no event and no new answer in between",
				request.Point, request.Began.Sub(former.ended).Seconds()),
		}
		if len(paths) == 0 {
			v.Severity = Note
			v.Text = fmt.Sprintf("%s was written without a cause, and only times changed", object)
		}
		all = append(all, v)
	}
	return all
}

// longestQuiet returns the longest time between two times in which no write of a process was under way. Example: a
// write is under way from 2 s to 3 s. Then the longest time between 1 s and 9 s is 6 s.
func longestQuiet(r *Run, session string, from, until time.Time) (longest time.Duration) {
	for _, request := range r.Requests {
		isWrite := request.Session == session && request.Point.IsWrite() && !proxy.IsBackground(request.Point.Resource)
		if !isWrite || !request.Began.After(from) || !request.Began.Before(until) {
			continue
		}
		longest = max(longest, request.Began.Sub(from))
		if request.Ended.After(from) { // writes can be under way at the same time
			from = request.Ended
		}
	}
	return max(longest, until.Sub(from))
}

// changedPaths returns the fields with other values, sorted. Times do not count, and neither does what depends on the
// resource version.
func changedPaths(w *history.View, s successor) []string {
	old, now := w.Fields(s.before), w.Fields(s.after)
	changed := make(map[string]bool)
	for path := range old {
		changed[path] = old[path] != now[path]
	}
	for path := range now {
		changed[path] = old[path] != now[path]
	}
	maps.DeleteFunc(changed, func(_ string, isChanged bool) bool { return !isChanged })
	return slices.Sorted(maps.Keys(changed))
}

// hasCause reports whether a process has had a cause for a write between two times.
func hasCause(
	r *Run, session string, from, until time.Time, ownVersions map[versionKey]bool, state history.Version,
) bool {
	isBetween := func(t time.Time) bool { return t.After(from) && t.Before(until) }
	for _, d := range r.Deliveries {
		isEcho := d.ResourceVersion != "" && ownVersions[versionKey{d.Resource, d.ResourceVersion}]
		if d.Session == session && isBetween(d.At) && !isEcho {
			return true
		}
	}
	answers := make(map[string]uint64) // by path
	for _, request := range r.Requests {
		if request.Session != session {
			continue
		}
		former := answers[request.Path]
		if request.AnswerHash != 0 {
			answers[request.Path] = request.AnswerHash
		}
		isFailed := request.Point.Verb != "watch" && (request.Code == 0 || request.Code >= 400)
		isNews := request.AnswerHash != former && request.AnswerHash != 0
		if isBetween(request.Ended) && (isFailed || isNews && !proxy.IsBackground(request.Point.Resource)) {
			return true
		}
	}
	// Times in objects have seconds.
	return hasTimeBetween(state.Object["spec"], from.Add(time.Second), until) ||
		hasTimeBetween(state.Object["status"], from.Add(time.Second), until)
}

// hasTimeBetween reports whether a value has a time that has come between two times.
func hasTimeBetween(value any, from, until time.Time) bool {
	switch value := value.(type) {
	case string:
		t, err := time.Parse(time.RFC3339, value)
		return err == nil && t.After(from) && !t.After(until)
	case map[string]any:
		for _, inner := range value {
			if hasTimeBetween(inner, from, until) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return hasTimeBetween(inner, from, until) })
	}
	return false
}
