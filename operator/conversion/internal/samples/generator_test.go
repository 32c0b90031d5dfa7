package samples_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/conversion/internal/samples"
)

var shelves = wire.Resource{GroupVersionKind: schema.GroupVersionKind{Group: "samples.example.com", Version: "v1", Kind: "Shelf"}, Plural: "shelves"}

// shelfSchema returns a schema with most kinds of fields.
func shelfSchema() *crd.Schema {
	low, high, three := 2.0, 8.0, int64(3)
	return &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{
		"metadata": {Type: "object"},
		"spec": {Type: "object", Required: []string{"size", "code"}, Properties: map[string]*crd.Schema{
			"size": {Type: "integer", Minimum: &low, Maximum: &high, ExclusiveMinimum: true},
			"code": {Type: "string", Pattern: "^[a-c]{2,4}(-[0-9]+)?$", MaxLength: &three},
			"mode": {Type: "string", Enum: []json.RawMessage{[]byte(`"open"`), []byte(`"shut"`)}},
			"boxes": {Type: "array", ListType: "map", ListMapKeys: []string{"name"}, MinItems: new(int64), Items: &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{
				"name": {Type: "string"}, "weight": {IntOrString: true, Pattern: `^[0-9]+(m|Gi)?$`},
			}}},
			"tags": {Type: "array", ListType: "set", MinItems: &three, Items: &crd.Schema{Type: "string"}},
		}},
	}, Required: []string{"spec"}}
}

type shelf struct {
	Metadata struct{ UID string }
	Spec     struct {
		Size  int64
		Code  string
		Mode  *string
		Boxes []struct {
			Name   *string
			Weight *string
		}
		Tags []string
	}
}

// Objects fit the schema, differ, and are the same for the same seed.
func TestWholeObjectsFitTheSchema(t *testing.T) {
	t.Parallel()
	g, again := samples.New(shelves, shelfSchema(), 7), samples.New(shelves, shelfSchema(), 7)
	code := regexp.MustCompile("^[a-c]{2,4}(-[0-9]+)?$")
	different := make(map[string]bool)
	boxes, modes := 0, 0
	for range 300 {
		text := g.Whole()
		if !bytes.Equal(text, again.Whole()) {
			t.Fatal("the same seed gives another object")
		}
		different[string(text)] = true
		var s shelf
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if s.Metadata.UID == "" || s.Spec.Size < 3 || s.Spec.Size > 8 || !code.MatchString(s.Spec.Code) || len(s.Spec.Code) > 3 ||
			s.Spec.Mode != nil && *s.Spec.Mode != "open" && *s.Spec.Mode != "shut" {
			t.Errorf("it does not fit: %s", text)
		}
		known := make(map[string]bool)
		for _, each := range s.Spec.Boxes {
			boxes++
			if each.Name == nil || known[*each.Name] {
				t.Fatalf("a box without a name, or with a name that is there twice: %s", text)
			}
			known[*each.Name] = true
		}
		if s.Spec.Mode != nil {
			modes++
		}
	}
	if len(different) < 100 || boxes == 0 || modes == 0 {
		t.Errorf("%d different objects, %d boxes, %d modes", len(different), boxes, modes)
	}
}

// Partial objects are those that a server converts for an apply, and those of a former schema.
func TestPartialObjects(t *testing.T) {
	t.Parallel()
	all := string(bytes.Join(samples.New(shelves, shelfSchema(), 7).Partial(), []byte("\n")))
	for _, want := range []string{`"metadata":\{"name":"sample","namespace":"default"\}\}`, `"spec":null`, `"spec":\{\}`, `"spec":\{"boxes":null\}`, `"spec":\{"boxes":\[\]\}`, `"spec":\{"size":[0-9]+\}`, `"spec":\{"code":""\}`} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("there is no object with %s", want)
		}
	}
}
