package faults

// Transition is the kind of a run without a [Fault], in which the user changes the declared state.
const Transition Kind = "transition"

// transition is the family of [Transition]. It plans no faults: explorations plan other steps of the user.
type transition struct{ baseFamily }

func (transition) Describe() Description {
	return Description{Group: string(Transition), Kinds: []Kind{Transition}, IsDefault: true, WhyNotPlanned: "the schemas of the samples suggest no other value"}
}
