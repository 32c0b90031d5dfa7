package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube/wire"
)

// Selector narrows a list, a watch or a collection. Several selectors must all match. Each request with an
// invalid Selector is an error.
type Selector struct {
	// labels and fields are requirements, each in its canonical form.
	labels, fields []string
	// isEverything is true for the selector that Everything returns.
	isEverything bool
	// match is for lists only.
	match *wire.Match
	err   error
}

var errListsOnly = errors.New(
	"owners and indexes narrow lists only, because servers do not know them: select by labels or fields")

// Everything returns a selector that selects all objects. [API.DeleteAll] requires it for a
// deletion without another selector.
func Everything() Selector { return Selector{isEverything: true} }

// Label selects by the value of one label.
func Label(key, value string) Selector { return labelSelector(key, selection.Equals, value) }

// LabelIn selects objects whose label has one of the values.
func LabelIn(key string, values ...string) Selector {
	return labelSelector(key, selection.In, values...)
}

// LabelExists selects objects that have the label, whatever its value.
func LabelExists(key string) Selector { return labelSelector(key, selection.Exists) }

func labelSelector(key string, operator selection.Operator, values ...string) Selector {
	requirement, err := labels.NewRequirement(key, operator, values)
	if err != nil {
		return Selector{err: fmt.Errorf("select by the label %q: %w", key, err)}
	}
	return Selector{labels: []string{canonicalLabel(*requirement)}}
}

// ParseLabels selects by a label expression, such as "app=web,tier!=cache" or "env in (a,b)".
// Do not put a value from elsewhere into an expression, where a comma begins a new requirement:
// use [Label].
func ParseLabels(expression string) Selector {
	parsed, err := labels.Parse(expression)
	if err != nil {
		return Selector{err: fmt.Errorf("label selector %q: %w", expression, err)}
	}
	requirements, _ := parsed.Requirements()
	texts := make([]string, 0, len(requirements))
	for _, r := range requirements {
		texts = append(texts, canonicalLabel(r))
	}
	return Selector{labels: texts}
}

// canonicalLabel returns the one text for all ways to write a requirement.
func canonicalLabel(r labels.Requirement) string {
	values := r.ValuesUnsorted()
	operator := r.Operator()
	switch {
	case operator == selection.DoubleEquals, operator == selection.In && len(values) == 1:
		operator = selection.Equals
	case operator == selection.NotIn && len(values) == 1:
		operator = selection.NotEquals
	}
	if written, err := labels.NewRequirement(r.Key(), operator, values); err == nil {
		r = *written
	}
	return r.String() // sorts the values
}

// Field selects by the value of one field, such as metadata.name. The server decides which fields
// a selector can name. All resources support metadata.name and metadata.namespace
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).
func Field(name, value string) Selector {
	if name == "" || strings.ContainsAny(name, `=!,\`) {
		return Selector{err: fmt.Errorf("select by the field %q: it is no name of a field", name)}
	}
	return Selector{
		fields: []string{canonicalField(fields.Requirement{Operator: selection.Equals, Field: name, Value: value})},
	}
}

// ParseFields selects by a field expression, such as "metadata.name=web,status.phase!=Running".
// Do not put a value from elsewhere into an expression, where a comma begins a new requirement:
// use [Field].
func ParseFields(expression string) Selector {
	parsed, err := fields.ParseSelector(expression)
	if err != nil {
		return Selector{err: fmt.Errorf("field selector %q: %w", expression, err)}
	}
	var texts []string
	for _, r := range parsed.Requirements() {
		texts = append(texts, canonicalField(r))
	}
	return Selector{fields: texts}
}

func canonicalField(r fields.Requirement) string {
	operator := "="
	if r.Operator == selection.NotEquals {
		operator = "!="
	}
	return r.Field + operator + fields.EscapeValue(r.Value)
}

// withoutMatches returns the selectors that servers know.
func withoutMatches(selectors []Selector) []Selector {
	return slices.DeleteFunc(slices.Clone(selectors), func(s Selector) bool { return s.match != nil })
}

// joinSelectors returns the label expression and the field expression of all selectors together. One
// selection has one text, whatever the order of its requirements, so that it is one Stream: Label("b", "2")
// with Label("a", "1"), and ParseLabels("a=1,b in (2)"), both give "a=1,b=2".
func joinSelectors(selectors []Selector) (labelSelector, fieldSelector string, err error) {
	var l, f []string
	var errs []error
	for _, s := range selectors {
		l, f, errs = append(l, s.labels...), append(f, s.fields...), append(errs, s.err)
	}
	slices.Sort(l)
	slices.Sort(f)
	return strings.Join(slices.Compact(l), ","), strings.Join(slices.Compact(f), ","), errors.Join(errs...)
}

// OwnerIs selects objects with an owner reference to owner, which must have a uid. The selector
// works only in lists, because servers do not know it.
func OwnerIs(owner Object) Selector {
	if uid := owner.GetUID(); uid != "" {
		return Selector{match: &wire.Match{Owner: uid}}
	}
	return Selector{err: fmt.Errorf("the owner %s has no uid: read it before what it owns is selected",
		ident.Quoted(owner.GetNamespace(), owner.GetName()))}
}

// matchesOf returns the conditions among selectors of a list of t.
func matchesOf(selectors []Selector, t target) ([]wire.Match, error) {
	var all []wire.Match
	for _, s := range selectors {
		if s.match == nil {
			continue
		}
		if x := s.match.Index; x != nil {
			if err := x.Check(t.resource, t.representation); err != nil {
				return nil, fmt.Errorf("list %s: %w", t.resource, err)
			}
		}
		all = append(all, *s.match)
	}
	return all, nil
}
