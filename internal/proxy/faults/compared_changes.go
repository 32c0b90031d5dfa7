package faults

// The kinds of the group user: their runs have no [Fault], and their states are compared with those of other runs. The runs of
// ruledSteps have a Fault, and rules alone judge them.
const (
	// ObjectChange changes the content of each object of the samples, deletes the object, and makes the object again.
	// The objects that the samples refer to come late.
	ObjectChange Kind = "object-change"
	// SimilarNames adds pairs of clones of the samples. The names of a pair have a common beginning, and most are long.
	SimilarNames Kind = "similar-names"
)

// comparedChanges is the family of these kinds. It plans no faults: package engine plans steps in which the user changes, deletes
// or adds whole objects.
type comparedChanges struct{ baseFamily }

func (comparedChanges) Describe() Description {
	return Description{Group: "user", Kinds: []Kind{ObjectChange, SimilarNames}, IsDefault: true}
}
