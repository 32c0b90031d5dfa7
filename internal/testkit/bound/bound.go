// Package bound compares what tests count, such as allocations and bytes, with what is recorded. It
// compares no times.
package bound

import "testing"

// slack is the part by which a count may exceed its record.
const slack = 0.01

// Check fails the test if a count exceeds its record by more than 1 %. A record is raised only in a
// commit that says why. A test that counts must not be parallel. The race detector allocates by
// itself, so Check skips the test under it.
func Check(t testing.TB, what string, count, recorded float64) {
	t.Helper()
	if isRaceDetector {
		t.Skip("the race detector allocates by itself")
	}
	switch {
	case count > recorded*(1+slack):
		t.Errorf("%s: %.1f, and the record is %.1f: find what has grown, or raise the record and say why",
			what, count, recorded)
	case count < recorded*(1-slack):
		t.Logf("%s: %.1f, and the record is %.1f: lower the record to keep the win", what, count, recorded)
	}
}

// CheckAllocations does what Check does for the allocations of f.
func CheckAllocations(t testing.TB, what string, recorded float64, f func()) {
	t.Helper()
	Check(t, what+": allocations", testing.AllocsPerRun(1000, f), recorded)
}
