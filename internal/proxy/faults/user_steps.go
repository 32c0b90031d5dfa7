package faults

// The kinds of runs without faults that other steps of the user make.
const (
	// Deletion deletes what the user has applied, objects that refer to others first.
	Deletion Kind = "deletion"
	// Pair applies the objects of the user twice, the second time under other names, and deletes the first ones alone.
	Pair Kind = "pair"
	// ManyChanges changes a field there and back, ChangesInHalf times in each of two steps.
	ManyChanges Kind = "many-changes"
)

// ChangesInHalf is how many changes the user makes in each of the two steps of [ManyChanges].
const ChangesInHalf = 25

// userSteps is the family of these kinds. Its faults do nothing, and name the kind in the schedule of a run: explorations
// plan the steps of the user.
type userSteps struct{ baseFamily }

func (userSteps) Describe() Description {
	return Description{Group: "user-steps", Kinds: []Kind{Deletion, Pair, ManyChanges}, IsDefault: true, IsJudgedByRules: true}
}

func (userSteps) Text(f Fault) string {
	return map[Kind]string{
		Deletion: "deletion of the samples", Pair: "two samples, one of which is deleted",
		ManyChanges: "many changes of a sample, there and back",
	}[f.Kind]
}
