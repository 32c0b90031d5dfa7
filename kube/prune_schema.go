package kube

import (
	"iter"
	"reflect"
	"regexp"
	"strings"
)

// memberSchema is what the schema of an own kind says about a member. Package crd makes the schema of the same json and
// crd tags. A test there compares the two.
type memberSchema struct {
	isRequired bool
	// isDescribed is false if a key type=… of a crd tag replaces the schema of the Go type. Then nothing below is
	// required.
	isDescribed bool
}

// newMemberSchema returns the schema of the member for the field f. isOptional is true if the encoder may leave the
// member out. pathTag is the crd tag of the path of the member.
func newMemberSchema(f reflect.StructField, isOptional bool, pathTag string) memberSchema {
	s := memberSchema{isRequired: !isOptional, isDescribed: true}
	hasDefault := false
	for _, tag := range []string{crdTagOf(f.Type), pathTag, f.Tag.Get("crd")} {
		for key, value := range keysOfTag(tag) {
			switch {
			case key == "required" || key == "optional":
				s.isRequired = key == "required"
			case key == "default":
				hasDefault = true
			case key == "type" || strings.HasSuffix(key, ".type"):
				s.isDescribed = s.isDescribed && value == "struct"
			}
		}
	}
	s.isRequired = s.isRequired && !hasDefault
	return s
}

// quotedValue matches the quoted value of a key of a crd tag.
var quotedValue = regexp.MustCompile(`='(?:[^']|'')*'`)

// keysOfTag returns the keys of a crd tag with their values, in their order. A quoted value is returned as an empty
// one.
func keysOfTag(tag string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for directive := range strings.SplitSeq(quotedValue.ReplaceAllString(tag, "="), ",") {
			key, value, _ := strings.Cut(directive, "=")
			if !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// crdTagOf returns the text of the method CRDTag of t. The method of an embedded type does not describe the struct
// around it.
func crdTagOf(t reflect.Type) string {
	if t.Kind() != reflect.Struct || t.Name() == "" {
		return ""
	}
	for f := range t.Fields() {
		if f.Anonymous && hasMethodOf[Tagged](f.Type) {
			return ""
		}
	}
	if tagged, ok := reflect.New(t).Interface().(Tagged); ok {
		return tagged.CRDTag()
	}
	return ""
}

// pathTags holds the crd tags by path of a Definition.
type pathTags struct{ byPath map[string]string }

// of returns the tag of a path. A nil t has no tags.
func (t *pathTags) of(path string) string {
	if t == nil {
		return ""
	}
	return t.byPath[path]
}

// leadFurther reports whether there is a tag for a path below path.
func (t *pathTags) leadFurther(path string) bool {
	for each := range t.byPath {
		if rest, ok := strings.CutPrefix(each, path); ok && rest != "" && (rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
