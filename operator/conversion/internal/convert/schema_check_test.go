package convert

import (
	"testing"

	"github.com/yare-go/yare/crd"
	"github.com/yare-go/yare/operator/internal/jsontree"
)

// Regression: the kept value 0.3 did not fit a field with multipleOf 0.1, which API servers accept. So it was not put back.
func TestMultiplesOfFractionsFit(t *testing.T) {
	t.Parallel()
	factor := 0.1
	schema := &crd.Schema{Type: "number", MultipleOf: &factor}
	check, err := newSchemaCheck(schema)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[jsontree.Number]bool{"0.3": true, "0.7": true, "0": true, "0.35": false} {
		if got := check.fits(schema, text, false); got != want {
			t.Errorf("%s fits: %t", text, got)
		}
	}
}
