package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/explore"
)

// modeVariable makes TestExplored explore all operators. By default it explores a right one by one kind of fault.
const modeVariable = "YARE_BOOK"

// failures is a test within a test. It counts the failures.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Errorf(format string, args ...any) { f.texts = append(f.texts, format) }

// A right operator has no finding, and a wrong one has one.
func TestExplored(t *testing.T) {
	if testing.Short() {
		t.Skip("explorations make many runs")
	}
	names := []string{"update-each-time"}
	settings := explore.Settings{Seed: 1, Only: []string{"denied-conflict"}}
	if os.Getenv(modeVariable) != "" {
		names, settings = slices.Sorted(maps.Keys(operators())), explore.Settings{Seed: 1, Budget: 100 * time.Second}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			binary := explore.Binary{Path: ".", Args: []string{name}, Install: []string{"crd.yaml"}}
			settings := settings
			settings.ReportFile = filepath.Join(t.TempDir(), "report.json")
			if !strings.HasPrefix(name, "wrong-") {
				explore.Run(t, binary, settings)
				return
			}
			f := &failures{TB: t}
			explore.Run(f, binary, settings)
			if len(f.texts) == 0 {
				t.Error("the exploration has found nothing")
			}
		})
	}
}
