package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
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
func compareChildren(ctx context.Context, oneValue *oneValueStates, steps []finding.Step) (compareState, error) {
	c := children{options: oneValue.options, shared: make(map[string]int), each: make(map[string]int)}
	cluster := oneValue.cluster
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
	two, err := oneValue.get(ctx, text, objects)
	if err != nil && !errors.Is(err, ErrNoReference) {
		return nil, err
	}
	one := childrenOf(oneValue.reference.state, c.options, c.applied[0])
	for resource, both := range childrenOf(two.state, c.options, c.applied[min(1, len(steps)-1)]) {
		if growth := len(both) - len(one[resource]); growth > 0 && two.masks != nil {
			c.each[resource], c.shared[resource] = growth, len(one[resource])-growth
		}
	}
	if len(c.each) == 0 {
		oneValue.results.update(func(coverage *finding.Coverage) {
			coverage.NotApplicable[faults.SimilarNames] = "a clone of the samples has no children of its own: --pairs names a second sample"
		})
		return expectAnyState, nil
	}
	return c.compare, nil
}

// compare returns the clones that have too few children, and the children of two clones.
func (c *children) compare(step int, state history.State) (differences []finding.Difference) {
	samples := make(map[types.UID]history.Version)
	for _, v := range state.Objects() {
		if c.applied[step][faults.Object{Resource: v.Resource, Name: v.Name}] && isCustom(v.Content()) {
			samples[v.UID] = v
		}
	}
	all := childrenOf(state, c.options, c.applied[step])
	for _, resource := range slices.Sorted(maps.Keys(c.each)) {
		var names []string
		owned := make(map[types.UID]int)
		for _, v := range all[resource] {
			names = append(names, v.Name)
			var owners []string
			for _, reference := range v.Content().GetOwnerReferences() {
				if owner, isSample := samples[reference.UID]; isSample {
					owned[owner.UID]++
					owners = append(owners, owner.Name)
				}
			}
			if len(owners) > 1 {
				differences = append(differences, finding.Difference{
					Object: resource + "/" + v.Name, Path: ownersPath, Reason: "one child for two objects: " + strings.Join(owners, " and "),
				})
			}
		}
		want := c.shared[resource] + c.each[resource]*c.sets[step]
		if len(names) < want {
			text := fmt.Sprintf("%d objects have %d %s together, and must have %d: %s. The names of the children of two objects are the same, or a child is missing",
				c.sets[step], len(names), resource, want, strings.Join(names, ", "))
			differences = append(differences, c.lacking(resource, samples, owned, text)...)
		}
	}
	return differences
}

// lacking returns a difference for each sample that owns fewer children than another one. If no sample owns a child, it
// returns one difference for the resource.
func (c *children) lacking(resource string, samples map[types.UID]history.Version, owned map[types.UID]int, text string) (differences []finding.Difference) {
	most := make(map[string]int)
	for uid, sample := range samples {
		most[sample.Resource] = max(most[sample.Resource], owned[uid])
	}
	for uid, sample := range samples {
		if owned[uid] < most[sample.Resource] {
			differences = append(differences, finding.Difference{
				Object: sample.Resource + "/" + sample.Name, Reason: fmt.Sprintf("the object has %d of %d %s. %s", owned[uid], most[sample.Resource], resource, text),
			})
		}
	}
	if len(differences) == 0 {
		return []finding.Difference{{Object: resource, Reason: text}}
	}
	slices.SortFunc(differences, func(a, b finding.Difference) int { return strings.Compare(a.Object, b.Object) })
	return differences
}

// ownersPath is the path of an object with two owners.
const ownersPath = "metadata.ownerReferences"

// foreignOwnerPattern matches what a program logs that has found its child in the hands of another object.
const foreignOwnerPattern = `(?i)already (owned|exists)|owned by another|controlled by another|controls it|belongs to another`

// hasReportedMissing reports whether the program has reported why an object of the user lacks a child: in the status of the
// object, in an Event about the object, or in a line of the log that names the object. A line that names another owner of the
// child is no such report: the names of the children of two objects are the same. An empty name stands for all objects.
// errorLines are the lines of the log with errors.
func hasReportedMissing(name string, state history.State, errorLines []string) bool {
	isOfOwner := regexp.MustCompile(foreignOwnerPattern).MatchString
	hasName := regexp.MustCompile(`(^|[^a-z0-9.-])` + regexp.QuoteMeta(name) + `($|[^a-z0-9.-])`).MatchString
	isReport := func(line string) bool { return (name == "" || hasName(line)) && !isOfOwner(line) }
	if slices.ContainsFunc(errorLines, isReport) {
		return true
	}
	for _, v := range state.Objects() {
		switch {
		case v.Resource == "events" && !history.IsControlPlane(v.Manager):
			about, _, _ := unstructured.NestedString(v.Object, "involvedObject", "name")
			kind, _, _ := unstructured.NestedString(v.Object, "type")
			message, _, _ := unstructured.NestedString(v.Object, "message")
			if kind == "Warning" && (name == "" || about == name) && !isOfOwner(message) {
				return true
			}
		case isCustom(v.Content()) && (name == "" || v.Name == name) && hasProblem(v.Object["status"]):
			return true
		}
	}
	return false
}

// hasProblem reports whether a status names a problem: by a condition, or by a text in a field whose name says so.
func hasProblem(status any) bool {
	switch status := status.(type) {
	case map[string]any:
		kind, _ := status["type"].(string)
		if state, isCondition := status["status"].(string); isCondition && kind != "" {
			return isBad(kind, state)
		}
		for name, value := range status {
			text, isText := value.(string)
			if isText && text != "" && regexp.MustCompile(`(?i)problem|error|message|fail`).MatchString(name) || hasProblem(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(status, hasProblem)
	}
	return false
}

// isBad reports whether a condition in a state shows a problem. Examples: Ready is bad if it is not True, Degraded is bad if
// it is True, and Progressing is never bad.
func isBad(condition, state string) bool {
	switch {
	case regexp.MustCompile(`(?i)progress|reconcil|paused|suspend`).MatchString(condition):
		return false
	case regexp.MustCompile(`(?i)degraded|fail|error|stalled|problem`).MatchString(condition):
		return state == "True"
	}
	return state != "True"
}

// minFightVersions is how many versions of one child in one step show that two objects change the child in turn.
const minFightVersions = 6

// fightOver returns the child that two clones change in turn, so that a step does not come to rest, or nothing.
func fightOver(h history.History, step int) finding.Differences {
	versions := make(map[types.UID]int)
	for _, v := range h.Versions {
		if v.Step != step || isCustom(v.Content()) || proxy.IsBackground(v.Resource) {
			continue
		}
		if versions[v.UID]++; versions[v.UID] == minFightVersions {
			return finding.Differences{{
				Object: v.Resource + "/" + v.Name, Reason: "two objects with similar names change this child in turn, so that the run never comes to rest",
			}}
		}
	}
	return nil
}
