package faults

// The kinds of runs without a [Fault] in which the user changes, deletes or adds whole objects.
const (
	// ObjectChange changes the content of each object of the samples, deletes the object, and makes the object again.
	// The objects that the samples refer to come late.
	ObjectChange Kind = "object-change"
	// SimilarNames adds clones of the samples whose names are long and have a common beginning.
	SimilarNames Kind = "similar-names"
)

// userActs is the family of the acts of users. It plans no faults: explorations plan other steps of the user.
type userActs struct{ baseFamily }

func (userActs) Describe() Description {
	return Description{Group: "user", Kinds: []Kind{ObjectChange, SimilarNames}, IsDefault: true}
}
