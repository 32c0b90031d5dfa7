package convert

import (
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// Bug: an empty template of a Pod became {"spec":{"containers":null}}, which the schema refuses, so nobody could update the
// object in the other version.
func TestZeroStructsWithRequiredFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		required             []string
		value, nonZero, want string
	}{
		"an optional struct":       {nil, `{"size":0,"template":{"metadata":{},"spec":{"containers":null}}}`, `{}`, `{"size":0}`},
		"a required struct":        {[]string{"template"}, `{"size":0,"template":{"metadata":{},"spec":{"containers":null}}}`, `{}`, `{"size":0,"template":{}}`},
		"a struct with content":    {nil, `{"template":{"metadata":{},"spec":{"containers":[{"name":"a"}]}}}`, `{"template":{"spec":{"containers":[{"name":"a"}]}}}`, `{"template":{"spec":{"containers":[{"name":"a"}]}}}`},
		"a pointer to nothing":     {nil, `{"template":{"spec":{"containers":null}}}`, `{"template":{"spec":{}}}`, `{"template":{"spec":{"containers":null}}}`},
		"a number of zero in it":   {nil, `{"template":{"spec":{"replicas":0}}}`, `{}`, `{"template":{"spec":{"replicas":0}}}`},
		"an empty list and a text": {nil, `{"template":{"spec":{"a":[],"b":""}}}`, `{}`, `{"template":{"spec":{"a":[],"b":""}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &crd.Schema{Type: "object", Required: c.required, Properties: map[string]*crd.Schema{
				"template": {Type: "object", Properties: map[string]*crd.Schema{
					"spec": {Type: "object", Required: []string{"containers"}, Properties: map[string]*crd.Schema{}},
				}},
			}}
			v := jsontree.Parse([]byte(c.value))
			scanner := jsonscan.New([]byte(c.nonZero))
			if err := removeZeros(s, v, nil, &scanner); err != nil {
				t.Fatal(err)
			}
			if got := string(jsontree.Append(nil, v)); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
}
