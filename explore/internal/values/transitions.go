package values

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/yare-go/yare/kube"
)

// Options change which values fields take. Fields are named by their path, such as
// spec.listeners[0].port.
type Options struct {
	// Values replace what the schema suggests for a field. nil stands for the absent field. A field
	// without any value keeps the value of the sample, with all fields below it.
	Values map[string][]any
	// Second is another sample of the kind. Its values are tried too, one by one and all at once. It may be nil.
	Second map[string]any
	// Pairs is how many transitions change two fields at once.
	Pairs int
	// Seed chooses the pairs of fields.
	Seed uint64
}

// sampleName is the name of the value that the sample has, secondName of the value of the second sample, and absentName
// of the value of a field that is removed.
const (
	sampleName = "sample"
	secondName = "second sample"
	absentName = "absent"
)

// allFields stands for all fields in a transition to the second sample.
const allFields = "all fields"

// Transition is a change of the declared state: a field, or a pair of fields, goes from one value to
// another, and then back to the value of the sample.
type Transition struct {
	// Field is the path of the field. A pair of fields is joined by a comma.
	Field string
	// From is the name of the value before: sample, or another value of the field.
	From string
	// Value is the name of the value after: absent, default, minimum, maximum, half, double, other, true,
	// false, empty, fewer, more, present, second sample, enum:X, or value:X of the options.
	Value string
	// Objects are what the user applies, one after the other: the sample with the value From, unless From is the
	// value of the sample, and then the sample with the value Value. Nobody may change them.
	Objects []map[string]any
}

// String returns the transition in a line, such as: spec.size: sample -> minimum.
func (t Transition) String() string { return t.Field + ": " + t.From + " -> " + t.Value }

// StepName returns the name of the step that applies an object of Objects. Example: the transition "spec.size: minimum
// -> maximum" has the steps "spec.size: sample -> minimum" and "spec.size: minimum -> maximum".
func (t Transition) StepName(index int) string {
	if index < len(t.Objects)-1 {
		return t.Field + ": " + sampleName + " -> " + t.From
	}
	return t.String()
}

// IsRemoval reports whether the field goes away.
func (t Transition) IsRemoval() bool { return t.Value == absentName }

// state is a sample in which a field, or a pair of fields, has another value.
type state struct {
	field  string
	value  string
	object map[string]any
	text   string // the object as JSON
}

func newState(field, value string, object map[string]any) (state, error) {
	s := state{field: field, value: value}
	data, err := encode(object)
	if err != nil {
		return s, err
	}
	s.text = string(data)
	return s, utiljson.Unmarshal(data, &s.object) // the options have values of other Go types than those of JSON
}

// Transitions returns the transitions of a sample, and the fields of its declared state. The transitions of each
// field come first, fields of the author before fields of embedded kinds. The ordered pairs of values of a field
// follow, and then the pairs of fields. Error: an option names a field that the schema lacks or the sample does
// not reach.
func Transitions(s *Schema, sample map[string]any, o Options) ([]Transition, []Field, error) {
	start, err := newState("", sampleName, sample)
	if err != nil {
		return nil, nil, fmt.Errorf("the sample: %w", err)
	}
	w := walker{options: o, known: map[string]bool{}}
	w.visitMembers(position{
		schema: s, sample: start.object, isPresent: true, second: o.Second, isInSecond: o.Second != nil,
	})
	if err := o.check(w.known); err != nil {
		return nil, nil, err
	}
	b := builder{schema: s, sample: start, seen: map[string]bool{start.text: true}}
	if err := b.addSecond(o.Second); err != nil {
		return nil, nil, err
	}
	fields := w.sorted()
	var report []Field
	var states [][]state // by the index of the field
	for _, f := range fields {
		ofField, err := b.states(f)
		if err != nil {
			return nil, nil, err
		}
		states = append(states, ofField)
		report = append(report, newField(f, ofField))
	}
	for _, ofField := range states {
		for _, to := range ofField {
			b.addTransition(start, to)
		}
	}
	for _, ofField := range states {
		b.addOrderedPairs(ofField)
	}
	return b.transitions, report, b.addFieldPairs(fields, o)
}

// check returns an error if the options name a field that does not exist.
func (o Options) check(known map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		if !known[name] {
			return fmt.Errorf("the field %s, which an option names, is not in the schema, or is in an object or a list that the sample does not have", name)
		}
	}
	return nil
}

// newField returns the report of a field.
func newField(f field, states []state) Field {
	report := Field{Path: f.path.String()}
	for _, s := range states {
		report.Values = append(report.Values, s.value)
	}
	reason := f.reason
	if reason == nil && len(states) == 0 {
		reason = errNoOtherValue
	}
	if reason != nil {
		report.Reason = reason.Error()
	}
	return report
}

// builder makes transitions.
type builder struct {
	schema      *Schema
	sample      state
	seen        map[string]bool // the JSON of all states
	transitions []Transition
}

// states returns the sample with each of the values of a field, without the states that other fields led to
// already.
func (b *builder) states(f field) ([]state, error) {
	var states []state
	for _, v := range f.values {
		object, _ := withValue(b.sample.object, b.schema, f.path, v).(map[string]any)
		s, err := newState(f.path.String(), v.name, object)
		if err != nil {
			return nil, fmt.Errorf("the value %s of the field %s: %w", v.name, f.path, err)
		}
		if !b.seen[s.text] {
			b.seen[s.text] = true
			states = append(states, s)
		}
	}
	return states, nil
}

// addSecond adds the transition to all values of a second sample, whose metadata does not count.
func (b *builder) addSecond(second map[string]any) error {
	if second == nil {
		return nil
	}
	object := maps.Clone(b.sample.object)
	for name := range object {
		if !isServerField(name) {
			delete(object, name)
		}
	}
	for name, content := range second {
		if !isServerField(name) {
			object[name] = content
		}
	}
	to, err := newState(allFields, secondName, object)
	if err != nil {
		return fmt.Errorf("the second sample: %w", err)
	}
	if !b.seen[to.text] {
		b.seen[to.text] = true
		b.addTransition(b.sample, to)
	}
	return nil
}

// addTransition adds the transition between two states.
func (b *builder) addTransition(from, to state) {
	t := Transition{Field: to.field, From: from.value, Value: to.value, Objects: []map[string]any{to.object}}
	if from.value != sampleName {
		t.Objects = []map[string]any{from.object, to.object}
	}
	b.transitions = append(b.transitions, t)
}

// addOrderedPairs adds the transitions between all values of a field.
func (b *builder) addOrderedPairs(states []state) {
	for _, from := range states {
		for _, to := range states {
			if from.value != to.value {
				b.addTransition(from, to)
			}
		}
	}
}

// addFieldPairs adds transitions of two fields at once, which the seed chooses.
func (b *builder) addFieldPairs(fields []field, o Options) error {
	fields = slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return len(f.values) == 0 })
	if len(fields) < 2 {
		return nil
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	const tries = 10 // most pairs are new and independent; a small schema has few
	for added, try := 0, 0; added < o.Pairs && try < tries*o.Pairs; try++ {
		f, g := fields[random.IntN(len(fields))], fields[random.IntN(len(fields))]
		if f.path.contains(g.path) || g.path.contains(f.path) {
			continue
		}
		v, u := f.values[random.IntN(len(f.values))], g.values[random.IntN(len(g.values))]
		first := withValue(b.sample.object, b.schema, f.path, v)
		object, _ := withValue(first, b.schema, g.path, u).(map[string]any)
		to, err := newState(f.path.String()+", "+g.path.String(), v.name+", "+u.name, object)
		if err != nil {
			return err
		}
		if !b.seen[to.text] {
			b.seen[to.text] = true
			b.addTransition(b.sample, to)
			added++
		}
	}
	return nil
}

// DryRun applies an object without storing it, as the field manager of the api. If the object exists,
// the server checks the change, otherwise the creation. The refusal is the reason of the server for
// which it does not accept the object, and is empty if the server accepts it. Error: everything else.
func DryRun(
	ctx context.Context, api kube.API[unstructured.Unstructured], object map[string]any,
) (refusal string, err error) {
	_, err = api.Apply(ctx, &unstructured.Unstructured{Object: object}, kube.DryRun())
	if kube.IsInvalid(err) || kube.HasReason(err, metav1.StatusReasonBadRequest) || kube.IsForbidden(err) {
		return err.Error(), nil
	}
	return "", err
}
