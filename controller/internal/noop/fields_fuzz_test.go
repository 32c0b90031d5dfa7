package noop

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// thingSchema has a field of each kind that servers distinguish.
const thingSchema = `types:
- name: thing
  map:
    fields:
    - {name: number, type: {scalar: numeric}}
    - {name: text, type: {scalar: string}}
    - {name: any, type: {namedType: __untyped_deduced_}}
    - {name: plain, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: numbers, type: {list: {elementType: {scalar: numeric}, elementRelationship: associative}}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: ports, type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}}}
    - {name: inner, type: {namedType: thing}}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, default: TCP, type: {scalar: string}}
    - {name: name, type: {scalar: string}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
- name: __untyped_atomic_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
- name: __untyped_deduced_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_deduced_}, elementRelationship: separable}
`

// choices makes decisions from the input of a fuzz test. At its end they are all 0.
type choices struct{ data []byte }

func (c *choices) n(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

// thing returns an object of the type thing. There are few values, so that they often meet.
func (c *choices) thing(depth int) map[string]any {
	object := make(map[string]any)
	if depth > 0 && c.n(3) == 1 {
		object["inner"] = c.thing(depth - 1)
	}
	for _, field := range []struct {
		name  string
		value func() any
	}{
		{"number", func() any { return int64(c.n(2)) }},
		{"text", func() any { return c.text() }},
		{"any", func() any { return c.any(2) }},
		{"plain", func() any { return c.list(func() any { return c.text() }) }},
		{"tags", func() any { return c.list(func() any { return c.text() }) }},
		{"numbers", func() any { return c.list(func() any { return int64(c.n(3)) }) }},
		{"labels", func() any { return c.texts() }},
		{"selector", func() any { return c.texts() }},
		{"ports", func() any { return c.list(func() any { return c.port() }) }},
	} {
		switch c.n(5) {
		case 1, 2:
			object[field.name] = field.value()
		case 3:
			if c.n(8) == 1 {
				object[field.name] = nil
			}
		}
	}
	return object
}

func (c *choices) text() string { return string(rune('x' + c.n(3))) }

func (c *choices) texts() map[string]any {
	m := make(map[string]any)
	for range c.n(3) {
		m[c.text()] = c.text()
	}
	return m
}

func (c *choices) list(item func() any) []any {
	l := []any{}
	for range c.n(4) {
		l = append(l, item())
	}
	return l
}

func (c *choices) port() map[string]any {
	p := map[string]any{"port": int64(c.n(2))}
	if c.n(2) == 1 {
		p["protocol"] = []string{"TCP", "UDP"}[c.n(2)]
	}
	if c.n(2) == 1 {
		p["name"] = c.text()
	}
	if c.n(3) == 1 {
		p["tags"] = c.list(func() any { return c.text() })
	}
	return p
}

func (c *choices) any(depth int) any {
	switch n := c.n(6); {
	case n == 1:
		return int64(c.n(2))
	case n == 2:
		return float64(c.n(2)) + 0.5
	case n == 3 && depth > 0:
		return c.list(func() any { return c.any(depth - 1) })
	case n > 3 && depth > 0:
		m := make(map[string]any)
		for range c.n(3) {
			m[c.text()] = c.any(depth - 1)
		}
		return m
	}
	return c.text()
}

// smd is an object on a server: its value, and who owns what, as structured-merge-diff has it.
type smd struct {
	kind     typed.ParseableType
	updater  *merge.Updater
	live     map[string]any
	managers fieldpath.ManagedFields
	// deduced is true for a kind without a schema, which has no defaults either.
	deduced bool
}

const version = fieldpath.APIVersion("v1")

type sameVersion struct{}

func (sameVersion) Convert(v *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return v, nil
}
func (sameVersion) IsMissingVersionError(error) bool { return false }

func newSMD(deduced bool) (*smd, error) {
	s := &smd{
		updater: (&merge.UpdaterBuilder{Converter: sameVersion{}, ReturnInputOnNoop: true}).BuildUpdater(),
		live:    map[string]any{}, managers: fieldpath.ManagedFields{}, kind: typed.DeducedParseableType, deduced: deduced,
	}
	if !deduced {
		parser, err := typed.NewParser(thingSchema)
		if err != nil {
			return nil, err
		}
		s.kind = parser.Type("thing")
	}
	return s, nil
}

var errRefused = errors.New("structured-merge-diff refuses the object")

// apply returns the object after an apply.
func (s *smd) apply(manager string, wanted map[string]any) (*smd, error) {
	live, err := s.kind.FromUnstructured(copied(s.live), typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	config, err := s.kind.FromUnstructured(copied(wanted))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	now, managers, err := s.updater.Apply(live, config, version, s.managers.Copy(), manager, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return s.with(now, managers)
}

// update returns the object after it was replaced.
func (s *smd) update(manager string, object map[string]any) (*smd, error) {
	live, err := s.kind.FromUnstructured(copied(s.live), typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	updated, err := s.kind.FromUnstructured(s.defaulted(copied(object)), typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	now, managers, err := s.updater.Update(live, updated, version, s.managers.Copy(), manager)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return s.with(now, managers)
}

func (s *smd) with(live *typed.TypedValue, managers fieldpath.ManagedFields) (*smd, error) {
	next := *s
	object, _ := live.AsValue().Unstructured().(map[string]any)
	next.live, next.managers = s.defaulted(copied(object)), managers
	return &next, nil
}

// defaulted sets the defaults of all ports, as a server does after a merge.
func (s *smd) defaulted(object map[string]any) map[string]any {
	if s.deduced {
		return object
	}
	if ports, ok := object["ports"].([]any); ok {
		for _, each := range ports {
			if port, ok := each.(map[string]any); ok && port["protocol"] == nil {
				port["protocol"] = "TCP"
			}
		}
	}
	if inner, ok := object["inner"].(map[string]any); ok {
		s.defaulted(inner)
	}
	return object
}

// copied returns a copy of an object as JSON carries it.
func copied(object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	result := map[string]any{}
	if object == nil { // an apply can remove everything
		return result
	}
	if err := utiljson.Unmarshal(text, &result); err != nil {
		panic(err)
	}
	return result
}

// fieldSet returns what a manager owns, in the notation of managedFields.
func (s *smd) fieldSet(t *testing.T, manager string) map[string]any {
	t.Helper()
	text, err := s.managers[manager].Set().ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(text))
}

// checkOwnsExactly brings an object into some state, and compares what ownsExactly says of an
// apply with what structured-merge-diff makes of it. It reports whether the apply changes
// nothing, and whether ownsExactly found that.
func checkOwnsExactly(t *testing.T, data []byte) (unchanged, found bool) {
	t.Helper()
	c := &choices{data}
	s, err := newSMD(c.n(4) == 3)
	if err != nil {
		t.Fatal(err)
	}
	wanted := c.thing(1)
	others := false
	for range 1 + c.n(6) {
		next := s
		switch c.n(6) {
		case 0, 1:
			next, err = s.apply("us", wanted)
		case 2:
			wanted = c.thing(1)
			next, err = s.apply("us", wanted)
		case 3:
			others = true
			next, err = s.apply("them", c.thing(1))
		case 4:
			others = true
			next, err = s.update("hand", c.thing(1))
		case 5: // an edit of one field
			others = true
			edited := copied(s.live)
			changes := c.thing(0)
			for _, name := range slices.Sorted(maps.Keys(changes))[:min(1, len(changes))] {
				edited[name] = changes[name]
			}
			next, err = s.update("hand", edited)
		}
		if errors.Is(err, errRefused) {
			return false, false
		}
		s = next
	}
	if s.managers["us"] == nil {
		return false, false
	}
	after, err := s.apply("us", wanted)
	if err != nil {
		return false, false
	}
	unchanged = reflect.DeepEqual(after.live, s.live) && after.managers.Equals(s.managers)
	var all []map[string]any
	for manager := range s.managers {
		all = append(all, s.fieldSet(t, manager))
	}
	found = ownsExactly(s.fieldSet(t, "us"), all, any(copied(wanted)), any(s.live))
	if found && !unchanged {
		t.Fatalf("an apply would be skipped that changes something:\nwanted %v\nlive   %v\nafter  %v\nmanagers %v\nafter    %v",
			wanted, s.live, after.live, s.managers, after.managers)
	}
	// Nobody owns an empty associative list, and without a schema it cannot be distinguished from
	// an atomic list that was never applied.
	if unchanged && !found && !others && !hasEmptyList(wanted) {
		t.Fatalf("an apply would be sent that changes nothing, to an object of our own:\nwanted %v\nlive   %v\nmanagers %v", wanted, s.live, s.managers)
	}
	return unchanged, found
}

func hasEmptyList(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, each := range v {
			if hasEmptyList(each) {
				return true
			}
		}
	case []any:
		return len(v) == 0 || slices.ContainsFunc(v, hasEmptyList)
	}
	return false
}

// Promise 8: what ownsExactly finds unchanged, structured-merge-diff leaves unchanged, field
// owners included, whatever we and others did to the object before. Structured-merge-diff is
// how servers carry out an apply.
func FuzzOwnsExactly(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		data := make([]byte, 20+random.IntN(200))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkOwnsExactly(t, data) })
}

// The comparison with structured-merge-diff is worth something only if both answers are
// frequent, and if most applies that change nothing are found.
func TestOwnsExactlyFindsMost(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	all, unchanged, found := 3000, 0, 0
	for range all {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		u, f := checkOwnsExactly(t, data)
		if u {
			unchanged++
		}
		if f {
			found++
		}
	}
	if t.Logf("of %d applies %d change nothing, and %d of these were found", all, unchanged, found); unchanged < all/10 || found < unchanged*2/3 {
		t.Errorf("of %d applies only %d change nothing, and %d of these were found", all, unchanged, found)
	}
}
