package faults

import (
	"context"
	"time"

	"github.com/yare-go/yare/internal/clock"
)

// The kinds of the group user-steps: their runs have a [Fault], which names the kind and disturbs nothing, and rules
// alone judge the runs. The runs of comparedChanges have no Fault, and are compared.
const (
	// Deletion deletes what the user has applied, objects that refer to others first. In other runs, which have no Fault
	// and are compared, the objects are deleted one after the other, in the order of their file and in the reverse order.
	Deletion Kind = "deletion"
	// Clones applies the objects of the user twice, the second time under other names, and deletes the first ones alone.
	// The clones of [SimilarNames] are made in other runs.
	Clones Kind = "clones"
	// Pair applies the objects of the user, then other objects of their kinds, and deletes the first ones alone.
	Pair Kind = "pair"
	// ManyChanges changes a field there and back, ChangesInHalf times in each of two steps.
	ManyChanges Kind = "many-changes"
	// Waiting does nothing for waitingTime after the first step, while the program runs.
	Waiting Kind = "waiting"
)

// waitingTime is how long nothing happens in a run of [Waiting]. Programs that look at their objects at intervals do so
// within this time, if the interval is not long.
const waitingTime = 25 * time.Second

// ChangesInHalf is how many changes the user makes in each of the two steps of [ManyChanges].
const ChangesInHalf = 25

// ruledSteps is the family of these kinds. Package engine plans the steps of the user, and a fault for the schedule of
// each run.
type ruledSteps struct{ baseFamily }

func (ruledSteps) Describe() Description {
	return Description{
		Group: "user-steps", Kinds: []Kind{Deletion, Clones, Pair, ManyChanges, Waiting}, IsDefault: true,
		IsJudgedByRules: true,
	}
}

func (ruledSteps) Text(f Fault) string {
	return map[Kind]string{
		Deletion: "deletion of the samples", Clones: "a sample and its copy, one of which is deleted",
		Pair:        "a sample and a second one, one of which is deleted",
		ManyChanges: "many changes of a sample, there and back", Waiting: "nothing happens for a while",
	}[f.Kind]
}

// AfterStep waits if the kind is [Waiting].
func (ruledSteps) AfterStep(ctx context.Context, run *Run, f Fault) error {
	if f.Kind != Waiting {
		return nil
	}
	run.RecordFault(ByUser, f.String())
	return clock.SleepReal(ctx, waitingTime)
}

// The kinds of the group user: their runs have no [Fault], and their states are compared with those of other runs. The
// runs of ruledSteps have a Fault, and rules alone judge them.
const (
	// ObjectChange changes the content of each object of the samples, deletes the object, and makes the object again.
	// The objects that the samples refer to come late.
	ObjectChange Kind = "object-change"
	// SimilarNames adds pairs of clones of the samples. The names of a pair have a common beginning, and most are long.
	SimilarNames Kind = "similar-names"
)

// comparedChanges is the family of these kinds. It plans no faults: package engine plans steps in which the user
// changes, deletes or adds whole objects.
type comparedChanges struct{ baseFamily }

func (comparedChanges) Describe() Description {
	return Description{Group: "user", Kinds: []Kind{ObjectChange, SimilarNames}, IsDefault: true}
}

// Transition is the kind of a run without a [Fault], in which the user changes the declared state.
const Transition Kind = "transition"

// transition is the family of [Transition]. It plans no faults: explorations plan other steps of the user.
type transition struct{ baseFamily }

func (transition) Describe() Description {
	return Description{
		Group: string(Transition), Kinds: []Kind{Transition}, IsDefault: true,
		WhyNotPlanned: "the schemas of the samples suggest no other value",
	}
}
