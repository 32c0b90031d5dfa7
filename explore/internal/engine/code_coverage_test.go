package engine

import (
	"maps"
	"strings"
	"testing"

	"github.com/yare-go/yare/explore/internal/finding"
)

// The statements of a package are counted over all its files.
func TestCountStatements(t *testing.T) {
	t.Parallel()
	packages, err := countStatements(strings.NewReader(`mode: set
example.com/app/main.go:10.13,12.2 3 1
example.com/app/main.go:14.13,16.2 2 0
example.com/app/other.go:1.1,2.2 1 1
example.com/app/inner/a.go:1.1,2.2 4 0
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]finding.Count{"example.com/app": {Done: 4, Total: 6}, "example.com/app/inner": {Done: 0, Total: 4}}
	if !maps.Equal(packages, want) {
		t.Errorf("the statements are %v, want %v", packages, want)
	}
	if _, err := countStatements(strings.NewReader("mode: set\nno block\n")); err == nil {
		t.Error("a line that is no block is accepted")
	}
}
