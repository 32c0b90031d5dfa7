package fieldset

import (
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestIndexOfItem(t *testing.T) {
	t.Parallel()
	const ports = `[{"port":80},{"port":80,"protocol":"UDP"},{"port":81,"protocol":"TCP"},{"port":81,"protocol":"TCP"}]`
	for _, c := range []struct {
		list, element       string
		isDefaulted, strict int // the index with isDefaulted, and without
	}{
		{ports, `k:{"port":80,"protocol":"UDP"}`, 1, 1},
		{ports, `k:{"port":80,"protocol":"TCP"}`, 0, -1},
		{ports, `k:{"port":80}`, -1, -1},
		{ports, `k:{"port":81,"protocol":"TCP"}`, -1, -1},
		{ports, `k:{"port":82,"protocol":"TCP"}`, -1, -1},
		{`[{"a":1},{"b":1}]`, `k:{"c":1}`, -1, -1},
		{`[1,{"a":1}]`, `k:{"a":1}`, -1, -1},
		{`["a","b"]`, `v:"b"`, 1, 1},
		{`[1,2.5]`, `v:2.5`, 1, 1},
		{`[1,2]`, `v:2`, 1, 1},
	} {
		var list []any
		if err := utiljson.Unmarshal([]byte(c.list), &list); err != nil {
			t.Fatal(err)
		}
		item, isItem := ParseItem(c.element)
		if !isItem {
			t.Errorf("%s names no item", c.element)
		}
		if got, strict := item.IndexIn(list, true), item.IndexIn(list, false); got != c.isDefaulted || strict != c.strict {
			t.Errorf("%s in %s: %d and %d, want %d and %d", c.element, c.list, got, strict, c.isDefaulted, c.strict)
		}
	}
}

func TestStrangeElements(t *testing.T) {
	t.Parallel()
	for _, element := range []string{"", ".", "k", "k:", "k:null", "k:1", "v:", "v:x", "i:0", "f:a"} {
		if item, isItem := ParseItem(element); isItem {
			t.Errorf("%q names the item %v", element, item)
		}
		if part, isPresent := PartOf([]any{"a"}, element); isPresent {
			t.Errorf("%q names the part %v of a list", element, part)
		}
	}
}
