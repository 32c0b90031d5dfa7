package crd

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/kube"
)

// The columns of the tags come first, then those of the Definition, then the age.
func TestOrderOfColumns(t *testing.T) {
	t.Parallel()
	root := &Schema{Type: typeObject, Properties: map[string]*Schema{"spec": {Type: typeObject, Properties: map[string]*Schema{
		"image": {Type: typeString}, "size": {Type: typeInteger}, "tags": {Type: typeArray},
	}}}}
	p := new(problems)
	c := &columns{root: reflect.TypeFor[struct{}](), problems: p}
	image := position{jsonNames: []string{"spec", "image"}}
	if err := c.add(&directive{key: "column"}, nil, root.Properties["spec"].Properties["image"], image); err != nil {
		t.Fatal(err)
	}
	if err := c.add(&directive{key: "column"}, nil, root.Properties["spec"].Properties["tags"], position{jsonNames: []string{"spec", "tags"}}); err == nil {
		t.Error("a list is a column")
	}
	var got []string
	for _, each := range c.all(root, []kube.Column{{Name: "Size", JSONPath: ".spec.size"}, {Name: "Wrong", JSONPath: ".spec.wrong"}}) {
		got = append(got, each.Name+" "+each.Type)
	}
	if want := []string{"Image string", "Size integer", "Wrong string", "Age date"}; !slices.Equal(got, want) {
		t.Errorf("the columns are %q, want %q", got, want)
	}
	if err := errors.Join(p.all...); err == nil || !strings.Contains(err.Error(), ".spec.wrong names no field") {
		t.Errorf("the problems are %v", err)
	}
}

// Bug: a server shows the first of several values alone, and the error of a column within a list advised such a path.
func TestColumnOfSeveralValues(t *testing.T) {
	t.Parallel()
	port := &Schema{Type: typeObject, Properties: map[string]*Schema{"port": {Type: typeInteger}}}
	root := &Schema{Type: typeObject, Properties: map[string]*Schema{"spec": {Type: typeObject, Properties: map[string]*Schema{
		"ports": {Type: typeArray, Items: port}, "args": {Type: typeArray, Items: &Schema{Type: typeString}},
	}}}}
	for path, part := range map[string]string{
		".spec.ports[*].port": "[*]", ".spec.ports[*]['port']": "[*]", "..port": "..", ".spec.*": ".*", ".spec.args[0:]": "[0:]", ".spec.args[1:3]": "[1:3]",
		".spec.args[:]": "[:]", ".spec.args[0,1]": "[0,1]", ".spec['ports','args']": "['ports','args']", ".spec.ports[ * ].port": "[ * ]",
		`.spec.ports[?(@.port==80)].ports[*]`: "[*]",
		".spec.args":                          "", ".spec.args[0]": "", ".spec.args[-1]": "", ".spec.args[-1:]": "", ".spec.args[:1]": "", ".spec.args[1:2]": "", `.metadata.annotations.example\.com/a`: "",
		`.status.conditions[?(@.type=="Ready")].status`: "", ".spec.ports[?(@.port==80)].port": "", ".metadata.annotations['a..b[*],c:d']": "", `.spec.ports[?(@.name=="a[*]")].port`: "",
	} {
		p := new(problems)
		c := &columns{root: reflect.TypeFor[struct{}](), problems: p}
		c.all(root, []kube.Column{{Name: "Ports", JSONPath: path}})
		err := errors.Join(p.all...)
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), "several values by "+part+",")) {
			t.Errorf("%s: want an error that names %q, got: %v", path, part, err)
		}
	}
	if err := new(columns).add(&directive{key: "column"}, nil, &Schema{Type: typeInteger}, position{isInElement: true}); err == nil || strings.Contains(err.Error(), "[*]") {
		t.Errorf("the error of a column in a list is: %v", err)
	}
}

// A server refuses a definition with more selectable fields.
func TestTooManySelectableFields(t *testing.T) {
	t.Parallel()
	var f selectableFields
	for i := range maxSelectableFields + 1 {
		err := f.add(&directive{key: "selectable"}, &Schema{Type: typeString}, position{jsonNames: []string{"spec", string(rune('a' + i))}})
		if (err != nil) != (i == maxSelectableFields) {
			t.Errorf("field %d: %v", i+1, err)
		}
	}
}
