package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/internal/proxy/faults"
)

func TestReadAcceptances(t *testing.T) {
	t.Parallel()
	read := func(text string) ([]finding.Acceptance, error) {
		path := filepath.Join(t.TempDir(), "accept.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadAcceptances(path)
	}
	got, err := read(`
- objects: secrets/web
  path: data.password
  faults: [crash, foreign]
  reason: nobody keeps it
- objects: configmaps/cache-*
  reason: it is a cache
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []finding.Acceptance{
		{Objects: "secrets/web", Path: "data.password", Faults: append([]faults.Kind{faults.Crash}, faults.FamilyOf(faults.ForeignEdit).Describe().Kinds...), Reason: "nobody keeps it"},
		{Objects: "configmaps/cache-*", Path: "*", Reason: "it is a cache"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the entries (-want +got):\n%s", diff)
	}
	for want, text := range map[string]string{
		"accept.yaml: entry 2: the accepted path secrets/web data has no reason": "[{path: status, reason: slow}, {objects: secrets/web, path: data}]",
		"accept.yaml: entry 1: an accepted path is empty":                        "[{reason: slow}]",
		`accept.yaml: entry 1: there is no kind of fault "crashes"`:              "[{path: status, reason: slow, faults: [crashes]}]",
		"accept.yaml is no list of intended differences":                         "path: status",
		`unknown field "object"`:                                                 "[{object: secrets/web, reason: slow}]",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
}

// An entry may name a rule. It needs no path, and an unknown rule is an error.
func TestAcceptanceOfARule(t *testing.T) {
	t.Parallel()
	a := finding.Acceptance{Rule: "gone", Reason: "The history is kept."}
	if err := completeAcceptance(&a); err != nil || a.Path != "*" {
		t.Errorf("the entry becomes %+v: %v", a, err)
	}
	a.Rule = "went"
	if err := completeAcceptance(&a); err == nil || !strings.Contains(err.Error(), "remade") {
		t.Errorf("the error of an unknown rule is %v", err)
	}
}
