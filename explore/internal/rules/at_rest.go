package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// atRest is the rule about changes without a cause, and about lists in another order.
type atRest struct{}

func (atRest) Describe() Description {
	return Description{Name: "at rest", Meaning: "The program changed an object again and again, and nothing had happened.", IsCertain: true}
}

// minRest is how long a process has written nothing before a change without a cause. A change that comes earlier may follow from
// the program's own write, which the program has just received, or belong to the same reconcile.
const minRest = time.Second

func (atRest) Violations(r *Run) []Violation {
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
// A run whose fault is in the external system is not judged: what the program then learns there is a cause that nobody sees.
func changesWithoutCause(r *Run) (all []Violation) {
	if r.hasFaultOf(faults.OutsideRefused, faults.OutsideCut, faults.OutsideSlow) {
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
		isSame := hasFormer && (len(paths) == 0 && len(former.paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(former.paths, p) }))
		if !isSame || isReported[change.after.UID] || longestQuiet(r, request.Session, former.ended, request.Began) < minRest ||
			hasCause(r, request.Session, former.ended, request.Began, ownVersions, change.before) {
			continue
		}
		isReported[change.after.UID] = true
		object := r.Object(change.after)
		v := Violation{
			Severity: Warning, Object: object, Paths: paths, Direction: "changed", Step: request.Point.Step, At: request.Began,
			Text: fmt.Sprintf("%s was changed without a cause", object),
			Evidence: fmt.Sprintf("The program sent %s, %.1f s after its write before. It had received no event and no new answer in between",
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

// longestQuiet returns the longest time between two times in which no write of a process was under way. Example: a write is under
// way from 2 s to 3 s. Then it is 6 s between 1 s and 9 s.
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
func hasCause(r *Run, session string, from, until time.Time, ownVersions map[versionKey]bool, state history.Version) bool {
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
	return hasTimeBetween(state.Object["spec"], from.Add(time.Second), until) || hasTimeBetween(state.Object["status"], from.Add(time.Second), until)
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

// changesOfOrder returns the versions of the program in which a list of a Pod template has another order and the same
// items, while the lists of the owner are the same. Another order rolls all Pods. A program that has written one other order
// may have learned something. Two of them have no cause.
func changesOfOrder(r *Run) (all []Violation) {
	counts := make(map[string]int)
	for _, s := range r.successors() {
		if r.writeOf(s) == nil || len(history.Managers(s.after)) != 1 {
			continue
		}
		for _, path := range reorderedLists(s.before.Object, s.after.Object) {
			if !hasOwnerSameLists(r, s) {
				continue
			}
			object := r.Object(s.after)
			key := object.String() + path
			counts[key]++
			v := Violation{
				Severity: Warning, Object: object, Paths: []string{path}, Direction: "reordered", Step: s.after.Step, At: s.after.At,
				Text:     fmt.Sprintf("The items of a list of %s have another order, and are the same", object),
				Evidence: fmt.Sprintf("The program wrote the list in another order %s, while the lists of its owner did not change. Another order rolls all Pods", r.timeText(s.after)),
			}
			if counts[key] > 1 {
				v.Severity = Failure
				v.Evidence = fmt.Sprintf("The program has written the list in another order %d times by then, %s, while the lists of its owner did not change. Another order rolls all Pods", counts[key], r.timeText(s.after))
			}
			all = append(all, v)
		}
	}
	return all
}

// hasOwnerSameLists reports whether the lists in the spec of the controller of an object were the same at two versions of
// the object. The user may have changed their order otherwise.
func hasOwnerSameLists(r *Run, s successor) bool {
	owner := controllerOf(s.after)
	if owner == "" || controllerOf(s.before) != owner {
		return false
	}
	lists := func(until history.Version) []string {
		var spec any
		for _, v := range r.Versions {
			if v.UID == owner && !ident.IsNewer(v.ResourceVersion, until.ResourceVersion) {
				spec = v.Object["spec"]
			}
		}
		return listsIn("spec", spec)
	}
	return slices.Equal(lists(s.before), lists(s.after))
}

// listsIn returns the lists in a value as texts with their paths, sorted.
func listsIn(path string, value any) (all []string) {
	switch value := value.(type) {
	case []any:
		return []string{path + " " + fmt.Sprint(value)}
	case map[string]any:
		for name, inner := range value {
			all = append(all, listsIn(path+"."+name, inner)...)
		}
	}
	slices.Sort(all)
	return all
}

// reorderedLists returns the paths of the lists of Pod templates that have the same items in another order.
func reorderedLists(before, after map[string]any) (paths []string) {
	for _, at := range [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		for _, list := range []string{"containers", "initContainers"} {
			path := append(slices.Clone(at), list)
			old, _, _ := unstructured.NestedFieldNoCopy(before, path...)
			now, _, _ := unstructured.NestedFieldNoCopy(after, path...)
			oldItems, _ := old.([]any)
			nowItems, _ := now.([]any)
			text := strings.Join(path, ".")
			if isReordered(namesOf(oldItems), namesOf(nowItems)) {
				paths = append(paths, text)
			}
			for _, item := range nowItems {
				container, _ := item.(map[string]any)
				name, _ := container["name"].(string)
				i := slices.IndexFunc(oldItems, func(o any) bool { m, _ := o.(map[string]any); return m["name"] == name })
				if i < 0 {
					continue
				}
				former, _ := oldItems[i].(map[string]any)
				for _, field := range []string{"env", "envFrom", "args", "command"} {
					if isReordered(texts(former[field]), texts(container[field])) {
						paths = append(paths, fmt.Sprintf("%s[name=%s].%s", text, name, field))
					}
				}
			}
		}
	}
	return paths
}

// namesOf returns the names of items.
func namesOf(items []any) (names []string) {
	for _, item := range items {
		m, _ := item.(map[string]any)
		names = append(names, fmt.Sprint(m["name"]))
	}
	return names
}

// texts returns the items of a list as texts.
func texts(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, fmt.Sprint(item)) // maps are printed in the order of their keys
	}
	return all
}

// isReordered reports whether two lists have the same items in another order.
func isReordered(a, b []string) bool {
	return !slices.Equal(a, b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
