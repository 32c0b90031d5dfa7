package crd

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// A tag of a path that matches no position is a problem, and the nearest path is named.
func TestTagOfAPathThatMatchesNothing(t *testing.T) {
	t.Parallel()
	root := &Schema{Type: typeObject, Properties: map[string]*Schema{"spec": {Type: typeObject, Properties: map[string]*Schema{"image": {Type: typeString}}}}}
	p := new(problems)
	tags := &tagSet{root: reflect.TypeFor[struct{}](), byPath: map[string]string{".spec.image": "minLength=1", ".spec.imag": "minLength=1"}, matched: map[string]bool{}, problems: p}
	if found, ok := tags.pathTag(position{tagPath: ".spec.image"}); !ok || !tags.applyTo(root.Properties["spec"].Properties["image"], found) {
		t.Fatalf("the tag of .spec.image: %v", errors.Join(p.all...))
	}
	tags.checkPaths(root)
	if err := errors.Join(p.all...); len(p.all) != 1 || !strings.Contains(err.Error(), `Tags[".spec.imag"]`) || !strings.Contains(err.Error(), "the nearest are .spec.image") {
		t.Errorf("the problems are %v", err)
	}
}
