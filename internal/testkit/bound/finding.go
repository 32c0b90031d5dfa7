package bound

import (
	"os"
	"testing"
)

// SkipFinding skips a test that proves a known mistake of yare. The mistake is not mended yet. The number is
// the mistake's in the review of the engine. With YARE_FINDINGS=1 in the environment the test runs, and
// fails.
func SkipFinding(t testing.TB, number int) {
	t.Helper()
	if os.Getenv("YARE_FINDINGS") == "" {
		t.Skipf("finding %d of the review of the engine is not mended yet", number)
	}
}
