package crd

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// setUnion returns the effect of a key that limits how many of some fields of a struct an object has. The rule for
// the members a and b and its message are those of controller-gen, so that a definition stays as it was:
//
//	exactlyOneOf  (has(self.a)?1:0)+(has(self.b)?1:0) == 1
//	atMostOneOf   (has(self.a)?1:0)+(has(self.b)?1:0) <= 1
//	atLeastOneOf  has(self.a)||has(self.b)
func setUnion(term, operator, end, message string) func(*Schema, directive) error {
	return func(s *Schema, d directive) error {
		members := strings.Split(d.value, "|")
		if len(members) < 2 {
			return fmt.Errorf("the JSON names of at least two fields are missing, as in %s=a|b", d.key)
		}
		var terms []string
		var problems []error
		for i, name := range members {
			switch p := s.Properties[name]; {
			case p == nil:
				fields := slices.Sorted(maps.Keys(s.Properties))
				problems = append(problems, fmt.Errorf("the struct has no field with the JSON name %q; it has %s", name, strings.Join(fields, ", ")))
			case slices.Contains(s.Required, name):
				problems = append(problems, fmt.Errorf("the field %s is required, so each object has it: make it optional, with omitempty or omitzero", name))
			case p.Default != nil:
				problems = append(problems, fmt.Errorf("the field %s has a default, so each object has it: leave the default out", name))
			case slices.Contains(members[:i], name):
				problems = append(problems, fmt.Errorf("%s occurs twice", name))
			case !celName.MatchString(celEscape(name)):
				problems = append(problems, fmt.Errorf("a rule in CEL cannot name the field %q: write the rule in another way", name))
			}
			terms = append(terms, fmt.Sprintf(term, celEscape(name)))
		}
		s.Validations = append(s.Validations, Validation{
			Rule:    strings.Join(terms, operator) + end,
			Message: fmt.Sprintf(message, strings.Join(members, " ")),
		})
		return errors.Join(problems...)
	}
}

// isUnionKey reports whether a key has the effect of setUnion.
func isUnionKey(key string) bool {
	return slices.Contains([]string{"exactlyOneOf", "atMostOneOf", "atLeastOneOf"}, key)
}

// celName matches the names that an expression in CEL can have.
var celName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// celKeywords are the names that CEL has for itself.
const celKeywords = "true false null in as break const continue else for function if import let loop package namespace return var void while"

// celEscape returns the name of a field as a rule has it. Example: a rule has x__dash__y for x-y.
func celEscape(name string) string {
	if slices.Contains(strings.Fields(celKeywords), name) {
		return "__" + name + "__"
	}
	return strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__").Replace(name)
}
