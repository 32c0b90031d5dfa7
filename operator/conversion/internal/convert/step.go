package convert

import (
	"errors"
	"fmt"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// Step connects two versions of a kind by two functions of the author. A Step is made by [NewStep].
type Step struct {
	// First and Second are the types of the two versions. Their resources are empty if a type is not valid.
	First, Second kube.Type

	// toSecond and toFirst call the functions.
	toSecond, toFirst func(from, to any)
	first, second     codec
	err               error
}

// NewStep returns the step between the versions A and B of a kind. toB fills b, which is new, from a. toA fills a,
// which is new, from b. A function may read the metadata of its first argument, without the annotations of this package
// and without managedFields. What a function does to the metadata, the apiVersion or the kind has no effect.
//
// The result of a function must follow from its first argument alone. A function may be called concurrently, and may
// change its first argument.
func NewStep[A, B any, PA kube.DefinedObjectOf[A], PB kube.DefinedObjectOf[B]](
	toB func(a *A, b *B), toA func(b *B, a *A),
) *Step {
	// The compiler compiles this function for each pair. Therefore functions without type parameters do the work.
	s := &Step{first: codec{func() any { return new(A) }}, second: codec{func() any { return new(B) }}}
	s.toSecond = func(from, to any) { toB(from.(*A), to.(*B)) }
	s.toFirst = func(from, to any) { toA(from.(*B), to.(*A)) }
	s.init(PA(new(A)), PB(new(B)), toB == nil, toA == nil)
	return s
}

// init sets the types of s, and the error of s if s cannot be used.
func (s *Step) init(first, second kube.Object, isToSecondNil, isToFirstNil bool) {
	var firstErr, secondErr error
	s.First, firstErr = kube.TypeOfObject(first)
	s.Second, secondErr = kube.TypeOfObject(second)
	if s.err = errors.Join(firstErr, secondErr); s.err != nil { // the error names the type
		return
	}
	a, b := s.First.Resource, s.Second.Resource
	switch {
	case a.GroupKind() != b.GroupKind():
		s.err = fmt.Errorf(
			"the conversion between %s (%s) and %s (%s) is between two kinds: give it two versions of one kind",
			ident.GoTypeName(s.First.Go), a.GroupVersionKind, ident.GoTypeName(s.Second.Go), b.GroupVersionKind)
	case a.Version == b.Version:
		s.err = fmt.Errorf("%s is between one version: give it the Go types of two versions", s)
	case isToSecondNil:
		s.err = fmt.Errorf("%s: its function from %s to %s is nil: write this function", s, a.Version, b.Version)
	case isToFirstNil:
		s.err = fmt.Errorf("%s: its function from %s to %s is nil: write this function", s, b.Version, a.Version)
	case s.First.Definition.Foreign || s.Second.Definition.Foreign:
		s.err = fmt.Errorf("%s: the Definition is Foreign: a program converts only the kinds that it defines itself", s)
	}
}

// Err returns an error that names the step if the step cannot be used: a nil function, a type that is not valid, one
// version twice, versions of two kinds, or a Definition that is Foreign.
func (s *Step) Err() error { return s.err }

// String returns the name of the step for errors, such as "the conversion between v1 and v2 of CronJob.example.com".
func (s *Step) String() string {
	return fmt.Sprintf("the conversion between %s and %s of %s",
		s.First.Resource.Version, s.Second.Resource.Version, s.First.Resource.GroupKind())
}

// errEnded is the error of a function that has ended its goroutine.
var errEnded = errors.New("the function has ended its goroutine")

// failedRun is the error of a function that has not returned, or whose result has no JSON.
type failedRun struct {
	err error
	// stack is the stack of a panic, or empty.
	stack string
}

// run returns the content that a function makes of the content of o. isForward is true for the function from First to
// Second. fromSchema and toSchema are those of the two versions. If the function fails, the content is empty.
func (s *Step) run(
	isForward bool, o *object, content map[string]any, fromSchema, toSchema *crd.Schema,
) (map[string]any, *failedRun) {
	from, to, call := s.first, s.second, s.toSecond
	fromType, toType := s.First, s.Second
	if !isForward {
		from, to, call = s.second, s.first, s.toFirst
		fromType, toType = s.Second, s.First
	}
	var result, nonZero []byte
	failed := runGuarded(func() error {
		input, err := from.decode(o.view(fromType.Resource, content))
		if err != nil {
			d := decodable{codec: from, object: o, resource: fromType.Resource}
			if input, err = from.decode(d.view(fromSchema, content)); err != nil {
				input = from.newObject()
			}
		}
		output := to.newObject()
		output.(kube.Object).GetObjectKind().SetGroupVersionKind(toType.Resource.GroupVersionKind)
		call(input, output)
		if result, err = to.encode(output); err == nil && hasEmptyMember(result) {
			nonZero, err = to.encodeWithoutZeros(output)
		}
		return err
	})
	object, isObject := jsontree.Parse(result).(map[string]any)
	if failed != nil || !isObject {
		return map[string]any{}, failed
	}
	for name := range object {
		if isFixed(name) {
			delete(object, name)
		}
	}
	if nonZero != nil {
		scanner := jsonscan.New(nonZero)
		_ = removeZeros(toSchema, object, content, &scanner) // the encoder has written it
	}
	return object, nil
}

// runGuarded calls f. It returns nil if f returns nil, and the reason if f does not. f runs in a goroutine of its own,
// which f may end.
func runGuarded(f func() error) *failedRun {
	done := make(chan *failedRun, 1)
	go func() {
		failed := &failedRun{err: errEnded}
		defer func() {
			if value := recover(); value != nil {
				// The value of the panic may have content of the object, so it is left out.
				failed = &failedRun{errors.New("the function panicked at " + logctx.PanicSite()), logctx.PanicStack()}
			}
			done <- failed
		}()
		failed = failedEncoding(f())
	}()
	return <-done
}

// failedEncoding returns the failed run of a result that has no JSON, or nil without an error.
func failedEncoding(err error) *failedRun {
	if err == nil {
		return nil
	}
	return &failedRun{err: fmt.Errorf("the result has no JSON: %w", err)}
}
