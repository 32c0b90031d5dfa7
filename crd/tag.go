package crd

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// tag is a parsed crd tag: of a type, of a path in the Definition, or of a field. The tags change
// a schema in this order, so that a later tag overrules an earlier one.
type tag struct {
	// name names the tag in errors.
	name       string
	directives []directive
}

// tagSet has the tags of one root type and of the types within it.
type tagSet struct {
	root reflect.Type
	// byPath holds the tags of the Definition by path. matched holds those paths that match a position.
	byPath   map[string]string
	matched  map[string]bool
	problems *problems
}

// newTag returns the tag with this text. The result has no directives after a problem.
func (s *tagSet) newTag(name, text string) (t tag, ok bool) {
	directives, err := parseTag(text)
	if err != nil {
		s.problems.addLines(name, err)
		return tag{name: name}, false
	}
	// The key nullable comes first, because it decides what default=null means.
	sort.SliceStable(directives,
		func(i, j int) bool { return directives[i].key == "nullable" && directives[j].key != "nullable" })
	return tag{name, directives}, true
}

// typeKeys returns the keys type=… of t, of a tag that stands at this scope of a field.
func (t tag) typeKeys(scope []string) (types []directive) {
	for _, d := range t.directives {
		if d.key == "type" {
			d.scope = append(slices.Clone(scope), d.scope...)
			types = append(types, d)
		}
	}
	return types
}

// typeTag returns the tag of t, from its method CRDTag. t has no tag if an embedded type has the
// method: the tag of that type does not describe the struct around it.
func (s *tagSet) typeTag(t reflect.Type) (found tag, ok bool) {
	if t.Name() == "" {
		return tag{}, false
	}
	if text := kubernetesTypeTag(t); text != "" {
		return s.newTag(t.String(), text)
	}
	name := t.String() + ": its method CRDTag"
	text, hasMethod, err := callCRDTag(t)
	if hasMethod && isPromotedTag(t, text, err) {
		return tag{}, false
	}
	if err != nil {
		s.problems.addLines(name, err)
	}
	if !hasMethod || err != nil {
		return tag{}, false
	}
	return s.newTag(fmt.Sprintf("%s: %q", name, text), text)
}

// callCRDTag returns the text of the method CRDTag of the zero value of t. It reports whether t
// has the method.
func callCRDTag(t reflect.Type) (text string, hasMethod bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it must work on the zero value: panic: %v", p)
		}
	}()
	tagged, hasMethod := reflect.New(t).Interface().(kube.Tagged)
	if hasMethod {
		return tagged.CRDTag(), hasMethod, nil
	}
	if _, hasMethod = reflect.PointerTo(t).MethodByName("CRDTag"); hasMethod {
		err = errors.New("it must be of type func() string")
	}
	return "", hasMethod, err
}

// isPromotedTag reports whether the method CRDTag of t is the method of a type that t embeds. The
// method of t returned text and err. Reflection does not see where a method is declared: a method of
// t itself must return another text.
func isPromotedTag(t reflect.Type, text string, err error) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range t.Fields() {
		elem := f.Type
		if elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if !f.Anonymous {
			continue
		}
		if elem.Kind() == reflect.Interface && err != nil {
			return true
		}
		if inner, hasMethod, _ := callCRDTag(elem); hasMethod && (err != nil || inner == text) {
			return true
		}
	}
	return false
}

// hasPath reports whether the Definition has a tag for a path.
func (s *tagSet) hasPath(path string) bool {
	_, ok := s.byPath[path]
	return ok
}

// pathTag returns the tag that the Definition has for a position.
func (s *tagSet) pathTag(at position) (t tag, ok bool) {
	text, ok := s.byPath[at.tagPath]
	if !ok {
		return tag{}, false
	}
	s.matched[at.tagPath] = true
	return s.newTag(s.pathTagName(at.tagPath, text), text)
}

func (s *tagSet) pathTagName(path, text string) string {
	return fmt.Sprintf("%s"+tagsOfDefinition+"[%q]: %q", ident.GoTypeName(s.root), path, text)
}

// tagsOfDefinition is in the name of each tag by path.
const tagsOfDefinition = ": its Definition's Tags"

// checkPaths records a problem for each tag whose path matches no field.
func (s *tagSet) checkPaths(root *Schema) {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(s.byPath)) {
		if s.matched[path] {
			continue
		}
		if all == nil {
			all = root.paths(nil, "")
			slices.Sort(all)
		}
		s.problems.addf(s.pathTagName(path, s.byPath[path]),
			"the path matches no field that a tag can describe; the nearest are %s", strings.Join(nearest(path, all, 3), ", "))
	}
}

// applyTo changes schema by t, a tag that does not belong to a field. It reports whether that succeeded.
func (s *tagSet) applyTo(schema *Schema, t tag) bool {
	ok := true
	fail := func(err error) {
		s.problems.addLines(t.name, err)
		ok = false
	}
	touched := []*Schema{schema}
	for _, d := range t.directives {
		if slices.Contains(fieldKeys(), d.key) && d.key != "type" {
			fail(fmt.Errorf("%s: %s is for a field: write it in the tag of the field", d, d.key))
			continue
		}
		if err := d.applyWithin(schema, &touched); err != nil {
			fail(err)
		}
	}
	for _, each := range slices.Backward(touched) {
		for _, err := range checkSchema(each) {
			fail(err)
		}
	}
	return ok
}

// fieldEffects holds the effects of the tags of a field on the field as a whole.
type fieldEffects struct {
	isRequired, isRequiredByTag bool
	column, wide                *directive
	selectable                  *directive
	// acceptingTag names the tag with the key acceptLoss.
	acceptingTag string
	// touched holds the schemas that a tag has changed.
	touched []*Schema
}

// apply changes s, the schema of the field, and e by t.
func (e *fieldEffects) apply(s *Schema, t tag, p *problems) {
	for _, d := range t.directives {
		switch {
		case len(d.scope) > 0:
			if err := d.applyWithin(s, &e.touched); err != nil {
				p.addLines(t.name, err)
			}
		case d.key == "acceptLoss":
			if d.hasValue {
				p.addf(t.name, "%s: it takes no value: write acceptLoss", d)
			}
			e.acceptingTag = t.name
		case d.key == "required" || d.key == "optional":
			if d.hasValue {
				p.addf(t.name, "%s: it takes no value: write %s", d, d.key)
			}
			e.isRequired, e.isRequiredByTag = d.key == "required", d.key == "required"
		case d.key == "column":
			e.column = &d
		case d.key == "wide":
			e.wide = &d
		case d.key == "selectable":
			e.selectable = &d
		case d.key == "type":
			// schemaOfType has applied it
		default:
			if err := applyTagKey(s, d); err != nil {
				p.addLines(t.name, err)
			}
		}
	}
}
