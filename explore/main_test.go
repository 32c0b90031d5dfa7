package explore_test

import (
	"os"
	"testing"

	"github.com/yare-go/yare/internal/testkit/parallel"
	"github.com/yare-go/yare/operator"
)

// programVariable is set for a process of this test binary that is the program of the tests.
const programVariable = "EXPLORE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		operator.Program{Name: "notes", Parts: func() ([]operator.Part, error) { return markedNoteParts(), nil }}.Main()
	}
	os.Exit(parallel.RunTests(m))
}
