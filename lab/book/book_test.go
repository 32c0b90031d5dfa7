package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yare-go/yare/explore"
)

// The environment variables of TestExplored.
const (
	// modeVariable makes TestExplored explore all operators. By default it explores a right one by one kind of fault.
	modeVariable = "YARE_BOOK"
	// seedVariable is the seed. Default: 1.
	seedVariable = "YARE_BOOK_SEED"
	// budgetVariable bounds each exploration of all operators. Default: 100s.
	budgetVariable = "YARE_BOOK_FOR"
)

// settingsOf returns the settings of the explorations of all operators.
func settingsOf(t *testing.T) explore.Settings {
	t.Helper()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv(seedVariable), "1"), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	budget, err := time.ParseDuration(cmp.Or(os.Getenv(budgetVariable), "100s"))
	if err != nil {
		t.Fatalf("%s: %v", budgetVariable, err)
	}
	return explore.Settings{Seed: seed, Budget: budget}
}

// failures is a test within a test. It counts the failures.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// A right operator has no finding, and a wrong one has one.
func TestExplored(t *testing.T) {
	if testing.Short() {
		t.Skip("explorations make many runs")
	}
	names := []string{"update-each-time"}
	settings := explore.Settings{Seed: 1, Only: []string{"denied-conflict"}}
	if os.Getenv(modeVariable) != "" {
		names, settings = slices.Sorted(maps.Keys(operators())), settingsOf(t)
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
				t.Fatal("the exploration has found nothing")
			}
			t.Log("found: " + f.texts[0])
		})
	}
}
