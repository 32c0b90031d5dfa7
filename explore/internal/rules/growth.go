package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// growth is the rule "growth": nothing becomes more with each change of the user.
type growth struct{}

func (growth) Describe() Description {
	return Description{
		Name: "growth", Meaning: "Objects, finalizers or entries become more with each change of the user.", IsCertain: true,
	}
}

const (
	// minGrowth is how much the second half of the changes adds at least. There are [faults.ChangesInHalf] changes.
	minGrowth = faults.ChangesInHalf / 5
	// minGrowthShare is the least share of the growth of the first half that the second half has. Less means that the
	// growth ends.
	minGrowthShare = 0.5
)

// Violations compares the sizes after the first, the second and the third step of a run with many changes: before the
// changes, after the first half of them, and after the second half. Example: the entries of status.history are 1, 25
// and
// 49. A history that keeps ten entries has 1, 10 and 10.
func (growth) Violations(r *Run) (all []Violation) {
	if !r.isOrdinary() || !r.Faults.HasKind(faults.ManyChanges) || len(r.States) < 3 {
		return nil
	}
	var sizes [3]map[size]int
	for i := range sizes {
		sizes[i] = sizesOf(r, r.States[i])
	}
	for _, at := range slices.SortedFunc(maps.Keys(sizes[2]),
		func(a, b size) int { return strings.Compare(a.String(), b.String()) }) {
		start, half, end := sizes[0][at], sizes[1][at], sizes[2][at]
		if end-half < minGrowth || half-start < minGrowth || float64(end-half) < minGrowthShare*float64(half-start) {
			continue
		}
		v := Violation{
			Severity: Failure, Object: at.object, Effect: "grows", Step: 2, At: r.Versions[len(r.Versions)-1].At,
			Text: fmt.Sprintf("%s become more with each change of the user", at.noun()),
			Evidence: fmt.Sprintf("There were %d before the changes, %d after %d changes there and back, and %d after %d",
				start, half, faults.ChangesInHalf, end, 2*faults.ChangesInHalf),
		}
		if at.path != "" {
			v.Paths = []string{at.path}
		}
		all = append(all, v)
	}
	return all
}

// size is a number that may grow: of the objects of a resource, or of the entries of a list or of an object.
type size struct {
	object faults.Object
	// path is the path of the list or object, without the keys of items. It is empty for the objects of a resource.
	path string
}

// String returns the object and the path.
func (s size) String() string { return s.object.String() + " " + s.path }

// noun returns what is counted.
func (s size) noun() string {
	if s.path == "" {
		return "The objects of " + s.object.Resource
	}
	return fmt.Sprintf("The entries of %s of %s", s.path, s.object)
}

// sizesOf returns the sizes in a state: of the objects that the operator has made, and of what is in them and in custom
// objects.
func sizesOf(r *Run, state history.State) map[size]int {
	sizes := make(map[size]int)
	for _, v := range state.Objects() {
		isMade := r.IsOperator(makerOf(r.View, v.UID))
		if proxy.IsBackground(v.Resource) || history.IsMadeByController(v) || !isMade && !history.HasCustomGroup(v) {
			continue
		}
		if isMade {
			sizes[size{object: faults.Object{Resource: v.Resource, Name: "*"}}]++
		}
		object := r.Object(v)
		for name, value := range v.Object {
			if name != "metadata" {
				addSizes(sizes, object, name, value)
			}
		}
		metadata, _ := v.Object["metadata"].(map[string]any)
		for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			addSizes(sizes, object, "metadata."+name, metadata[name])
		}
	}
	return sizes
}

// addSizes adds the number of entries of a value, and of the values in it.
func addSizes(sizes map[size]int, object faults.Object, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		sizes[size{object, path}] += len(value)
		for name, inner := range value {
			addSizes(sizes, object, path+"."+name, inner)
		}
	case []any:
		sizes[size{object, path}] += len(value)
		for _, inner := range value {
			if _, isList := inner.([]any); !isList {
				addMemberSizes(sizes, object, path+"[]", inner)
			}
		}
	}
}

// addMemberSizes adds the numbers of entries in the members of an item of a list. The members themselves are as many as
// the items.
func addMemberSizes(sizes map[size]int, object faults.Object, path string, item any) {
	members, _ := item.(map[string]any)
	for name, inner := range members {
		if list, isList := inner.([]any); isList {
			addSizes(sizes, object, path+"."+name, list)
		}
	}
}
