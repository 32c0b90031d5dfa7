package cache

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/yare-go/yare/kube/wire"
)

// SelectsWithin reports whether the selectors of r, which is a list, imply those of a stream: the stream selects each
// object that r selects. It returns false if that is not certain. Neither the resource nor the namespace counts.
//
// Examples:
//
//	r                     the stream       result
//	app=web               app=web          true
//	app=web,tier=front    app in (web,db)  true
//	app                   app=web          false
//	spec.nodeName=a       spec.nodeName=b  false
func SelectsWithin(r *wire.Request, stream wire.Stream) bool {
	return stream.ShardSelector == "" &&
		impliesLabels(r.Query.Get("labelSelector"), stream.LabelSelector) &&
		impliesFields(r.Query.Get("fieldSelector"), stream.FieldSelector)
}

// impliesLabels reports whether each set of labels that the narrow expression selects is selected by the wide one.
func impliesLabels(narrow, wide string) bool {
	if wide == "" || narrow == wide {
		return true
	}
	narrowSelector, err := labels.Parse(narrow)
	if err != nil {
		return false
	}
	wideSelector, err := labels.Parse(wide)
	if err != nil {
		return false
	}
	assumed, _ := narrowSelector.Requirements()
	required, _ := wideSelector.Requirements()
	return !slices.ContainsFunc(required, func(each labels.Requirement) bool { return !impliesRequirement(assumed, each) })
}

// impliesRequirement reports whether each set of labels that meets all assumed requirements meets the required one. It
// compares the requirements of one key only, by values that stand for all others.
func impliesRequirement(assumed []labels.Requirement, required labels.Requirement) bool {
	key := required.Key()
	assumed = slices.DeleteFunc(slices.Clone(assumed), func(each labels.Requirement) bool { return each.Key() != key })
	isCounterexample := func(l labels.Set) bool {
		return !required.Matches(l) &&
			!slices.ContainsFunc(assumed, func(each labels.Requirement) bool { return !each.Matches(l) })
	}
	if isCounterexample(nil) {
		return false
	}
	for _, value := range representatives(append(assumed, required)) {
		if isCounterexample(labels.Set{key: value}) {
			return false
		}
	}
	return true
}

// representatives returns values of a label. For each value there is one among them that meets the same requirements,
// which are of one key.
//
// Example: the requirement x>5 gives 4, 5 and 6 with and without a zero in front, and a value that no requirement
// names.
func representatives(requirements []labels.Requirement) []string {
	values := []string{"/"} // no label has this value, so no requirement names it
	for _, each := range requirements {
		isBound := each.Operator() == selection.GreaterThan || each.Operator() == selection.LessThan
		for value := range each.Values() {
			values = append(values, value)
			n, err := strconv.ParseInt(value, 10, 64)
			if !isBound || err != nil {
				continue
			}
			for _, near := range []int64{n - 1, n, n + 1} {
				text := strconv.FormatInt(near, 10)
				values = append(values, text, withZeros(text))
			}
		}
	}
	return values
}

// withZeros returns another text of an integer, which hardly any requirement names.
func withZeros(integer string) string {
	const zeros = "0000000000000000000"
	if integer[0] == '-' {
		return "-" + zeros + integer[1:]
	}
	return zeros + integer
}

// impliesFields reports whether the narrow expression has all requirements of the wide one.
func impliesFields(narrow, wide string) bool {
	if wide == "" || narrow == wide {
		return true
	}
	assumed, err := fields.ParseSelector(narrow)
	if err != nil {
		return false
	}
	required, err := fields.ParseSelector(wide)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(required.Requirements(), func(each fields.Requirement) bool {
		return !slices.Contains(assumed.Requirements(), each)
	})
}
