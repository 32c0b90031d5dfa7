package conversion

import (
	"github.com/yare-go/yare/kube"
)

// A Step connects two versions of a kind by two functions of the author. A Step is made by [NewStep].
type Step struct {
	// First and Second are the types of the two versions. Their resources are empty if a type is not valid.
	First, Second kube.Type

	err error
}

// NewStep returns the step between the versions A and B of a kind. toB fills b, which is new, from a. toA fills a, which is
// new, from b. A function may read the metadata of its first argument. What a function does to the metadata, the
// apiVersion or the kind has no effect.
//
// The result of a function must follow from its input alone. A function may be called concurrently. A function may
// change its first argument.
func NewStep[A, B any, PA kube.DefinedObjectOf[A], PB kube.DefinedObjectOf[B]](toB func(a *A, b *B), toA func(b *B, a *A)) *Step {
	panic("not yet")
}

// Err returns an error that names the step if the step cannot be used: a nil function, a type that is not valid, one
// version twice, or versions of two kinds.
func (s *Step) Err() error { return s.err }

// String returns the name of the step for errors, such as "the conversion between v1 and v2 of CronJob.example.com".
func (s *Step) String() string { panic("not yet") }
