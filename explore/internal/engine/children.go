package engine

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// children compares the children of several clones of the samples: see [finding.CompareChildren]. For example, the sample
// web has 2 ConfigMaps, and the samples web and other-web have 4. Then 6 clones must have 12 ConfigMaps.
type children struct {
	options history.Options
	// shared counts the objects by resource that all samples have in common, and each counts the children of one clone.
	shared, each map[string]int
	// applied are the objects that the user has applied and not deleted at the end of each step.
	applied []map[faults.Object]bool
	// sets is how often the custom objects of the samples exist at the end of each step.
	sets []int
}

// childrenOf returns the objects of a state that the program has written, by resource, without the objects that the user has
// applied.
func childrenOf(state history.State, o history.Options, applied map[faults.Object]bool) map[string][]history.Version {
	all := make(map[string][]history.Version)
	for _, v := range state.WrittenBy(o) {
		if !applied[faults.Object{Resource: v.Resource, Name: v.Name}] {
			all[v.Resource] = append(all[v.Resource], v)
		}
	}
	return all
}

// compareChildren returns the comparison of the clones of a run. It returns no difference in any step if a clone with a
// name of its own has no children.
func (e *examiner) compareChildren(ctx context.Context, steps []finding.Step) (compareState, error) {
	c := children{options: e.options, shared: make(map[string]int), each: make(map[string]int)}
	cluster := e.oneValue.cluster
	originals := 0
	for i := range steps {
		_, objects, err := cluster.appliedUntil(steps, i)
		if err != nil {
			return nil, err
		}
		applied, custom := make(map[faults.Object]bool), 0
		for _, raw := range objects {
			sample, err := cluster.decode(raw, "")
			if err != nil {
				return nil, err
			}
			object, err := cluster.objectOf(raw)
			if err != nil {
				return nil, err
			}
			applied[object] = true
			if isCustom(sample) {
				custom++
			}
		}
		if i == 0 {
			originals = max(custom, 1)
		}
		c.applied, c.sets = append(c.applied, applied), append(c.sets, custom/originals)
	}
	text, objects, err := cluster.appliedUntil(steps, min(1, len(steps)-1))
	if err != nil {
		return nil, err
	}
	two, err := e.oneValue.get(ctx, text, objects)
	if err != nil {
		return nil, err
	}
	one := childrenOf(e.references.runs[0].states[0], e.options, c.applied[0])
	for resource, both := range childrenOf(two.state, e.options, c.applied[min(1, len(steps)-1)]) {
		if growth := len(both) - len(one[resource]); growth > 0 && two.masks != nil {
			c.each[resource], c.shared[resource] = growth, len(one[resource])-growth
		}
	}
	if len(c.each) == 0 {
		e.results.update(func(coverage *finding.Coverage) {
			coverage.NotApplicable[faults.SimilarNames] = "a clone of the samples has no children of its own: --pairs names a second sample"
		})
		return expectNothing, nil
	}
	return c.compare, nil
}

// compare returns the resources of which the clones have too few objects, and the objects that belong to two clones.
func (c *children) compare(step int, state history.State) (differences []finding.Difference) {
	owners := make(map[types.UID]string)
	for _, v := range state.Objects() {
		if c.applied[step][faults.Object{Resource: v.Resource, Name: v.Name}] {
			owners[v.UID] = v.Resource + "/" + v.Name
		}
	}
	all := childrenOf(state, c.options, c.applied[step])
	for _, resource := range slices.Sorted(maps.Keys(c.each)) {
		var names []string
		for _, v := range all[resource] {
			names = append(names, v.Name)
			var ofChild []string
			for _, owner := range v.Content().GetOwnerReferences() {
				if name := owners[owner.UID]; name != "" {
					ofChild = append(ofChild, name)
				}
			}
			if len(ofChild) > 1 {
				differences = append(differences, finding.Difference{
					Object: resource + "/" + v.Name, Path: ownersPath, Reason: fmt.Sprintf("one child for two objects: %s", strings.Join(ofChild, " and ")),
				})
			}
		}
		if want := c.shared[resource] + c.each[resource]*c.sets[step]; len(names) < want {
			differences = append(differences, finding.Difference{Object: resource, Reason: fmt.Sprintf(
				"%d samples have %d %s, and must have %d, because a sample alone has %d: %s. The names of the samples are %s",
				c.sets[step], len(names), resource, want, c.each[resource], strings.Join(names, ", "), strings.Join(slices.Sorted(maps.Values(owners)), ", "))})
		}
	}
	return differences
}

// ownersPath is the path of an object with two owners.
const ownersPath = "metadata.ownerReferences"

// foreignOwnerPattern matches what a program logs that has found its child in the hands of another object.
const foreignOwnerPattern = `(?i)already (owned|exists)|owned by another|controlled by another|belongs to another`

// hasReportedChildren reports whether the program has reported why a clone lacks its children: in an Event, in the status of
// a clone, or in the log. A log that names another owner of the child is no such report: the names of the children of two
// objects are one.
func (r *run) hasReportedChildren(state history.State) bool {
	isOfOwner := regexp.MustCompile(foreignOwnerPattern).MatchString
	if slices.ContainsFunc(r.output.errorLines(), func(line string) bool { return !isOfOwner(line) }) {
		return true
	}
	for _, v := range state.Objects() {
		switch {
		case v.Resource == "events" && !history.IsControlPlane(v.Manager):
			if kind, _, _ := unstructured.NestedString(v.Object, "type"); kind == "Warning" {
				return true
			}
		case isCustom(v.Content()) && hasProblem(v.Object["status"]):
			return true
		}
	}
	return false
}

// hasProblem reports whether a status names a problem: by a condition that is not True and has a message, or by a text in
// a field whose name says so.
func hasProblem(status any) bool {
	switch status := status.(type) {
	case map[string]any:
		message, _ := status["message"].(string)
		if state, isCondition := status["status"].(string); isCondition && message != "" {
			return state != "True"
		}
		for name, value := range status {
			text, isText := value.(string)
			if isText && text != "" && regexp.MustCompile(`(?i)problem|error|reason|message|fail`).MatchString(name) || hasProblem(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(status, hasProblem)
	}
	return false
}

// minFightVersions is how many versions of one child in one step show that two objects change the child in turn.
const minFightVersions = 6

// judgeFight changes the verdict of a run that never came to rest, because clones were added: the clones fight over a
// child, or the program tries again and again what the server refuses.
func (e *examiner) judgeFight(out *runResult) {
	if out.verdict != finding.Busy || out.verdictStep < 2 {
		return
	}
	out.verdict = ""
	versions := make(map[types.UID]int)
	for _, v := range out.history.Versions {
		if v.Step != out.verdictStep || isCustom(v.Content()) || v.Resource == "events" || v.Resource == "leases.coordination.k8s.io" {
			continue
		}
		if versions[v.UID]++; versions[v.UID] == minFightVersions {
			out.verdict, out.differences = finding.Wrong, append(finding.Differences(nil), finding.Difference{
				Object: v.Resource + "/" + v.Name, Reason: "two objects with similar names change this child in turn, so that the run never comes to rest",
			})
			return
		}
	}
	out.differences = nil
}
