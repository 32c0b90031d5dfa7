package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// children compares the children of several clones of the samples: see [finding.CompareChildren]. For example, the
// sample web has 2 ConfigMaps, and the samples web and other-web have 4. Then 6 clones must have 12 ConfigMaps.
type children struct {
	options history.Options
	// shared counts the objects by resource that all clones have in common, and perClone counts those of one clone.
	shared, perClone map[string]int
	// applied are the objects that the user has applied and not deleted at the end of each step.
	applied []map[faults.Object]bool
	// cloneCounts is how many clones of the samples exist at the end of each step. The samples count as one clone.
	cloneCounts []int
}

// madeObjects returns the objects of a state that the program has written, by resource, without the objects that the
// user has applied.
func madeObjects(state history.State, o history.Options, applied map[faults.Object]bool) map[string][]history.Version {
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
	c := children{options: oneValue.options, shared: make(map[string]int), perClone: make(map[string]int)}
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
			if hasCustomGroup(sample) {
				custom++
			}
		}
		if i == 0 {
			originals = max(custom, 1)
		}
		c.applied, c.cloneCounts = append(c.applied, applied), append(c.cloneCounts, custom/originals)
	}
	text, objects, err := cluster.appliedUntil(steps, min(1, len(steps)-1))
	if err != nil {
		return nil, err
	}
	two, err := oneValue.stateOf(ctx, text, objects)
	if err != nil && !errors.Is(err, ErrNoReference) {
		return nil, err
	}
	one := madeObjects(oneValue.reference.state, c.options, c.applied[0])
	for resource, both := range madeObjects(two.state, c.options, c.applied[min(1, len(steps)-1)]) {
		if growth := len(both) - len(one[resource]); growth > 0 && two.masks != nil {
			c.perClone[resource], c.shared[resource] = growth, len(one[resource])-growth
		}
	}
	if len(c.perClone) == 0 {
		reason := "a clone of the samples has no children of its own: --pairs names a second sample"
		if two.masks == nil {
			reason = "the runs with a clone of the samples differ, or show that its values are unusable"
		}
		oneValue.results.update(func(coverage *finding.Coverage) { coverage.NotApplicable[faults.SimilarNames] = reason })
		return expectAnyState, nil
	}
	return c.compare, nil
}

// compare returns the clones that have too few children, and the children of two clones.
func (c *children) compare(step int, state history.State) (differences []finding.Difference) {
	samples := make(map[types.UID]history.Version)
	for _, v := range state.Objects() {
		if c.applied[step][faults.Object{Resource: v.Resource, Name: v.Name}] && hasCustomGroup(v.Content()) {
			samples[v.UID] = v
		}
	}
	all := madeObjects(state, c.options, c.applied[step])
	for _, resource := range slices.Sorted(maps.Keys(c.perClone)) {
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
					Object: resource + "/" + v.Name, Path: ownersPath,
					Reason: "one child for two objects: " + strings.Join(owners, " and "),
				})
			}
		}
		want := c.shared[resource] + c.perClone[resource]*c.cloneCounts[step]
		if len(names) < want {
			text := fmt.Sprintf("%d objects have %d %s together, and must have %d: %s. The names of the children of two objects are the same, or a child is missing",
				c.cloneCounts[step], len(names), resource, want, strings.Join(names, ", "))
			differences = append(differences, c.lacking(resource, samples, owned, text)...)
		}
	}
	return differences
}

// lacking returns a difference for each sample that owns fewer children than another one. If no sample owns a child, it
// returns one difference for the resource.
func (c *children) lacking(
	resource string, samples map[types.UID]history.Version, owned map[types.UID]int, text string,
) (differences []finding.Difference) {
	most := make(map[string]int)
	for uid, sample := range samples {
		most[sample.Resource] = max(most[sample.Resource], owned[uid])
	}
	for uid, sample := range samples {
		if owned[uid] < most[sample.Resource] {
			differences = append(differences, finding.Difference{
				Object: sample.Resource + "/" + sample.Name,
				Reason: fmt.Sprintf("the object has %d of %d %s. %s", owned[uid], most[sample.Resource], resource, text),
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

// minVersionsInTurn is how many versions of one child in one step show that two objects change the child in turn.
const minVersionsInTurn = 6

// childChangedInTurn returns the child that two clones change in turn, so that a step does not come to rest, or
// nothing.
func childChangedInTurn(h history.History, step int) finding.Differences {
	versions := make(map[types.UID]int)
	for _, v := range h.Versions {
		if v.Step != step || hasCustomGroup(v.Content()) || proxy.IsBackground(v.Resource) {
			continue
		}
		if versions[v.UID]++; versions[v.UID] == minVersionsInTurn {
			return finding.Differences{{
				Object: v.Resource + "/" + v.Name,
				Reason: "two objects with similar names change this child in turn, so that the run never comes to rest",
			}}
		}
	}
	return nil
}
