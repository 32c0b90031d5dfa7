package engine

import (
	"context"
	"testing"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// A step has only its own faults, and faults without a trigger happen after the step.
func TestStepInjector(t *testing.T) {
	t.Parallel()
	crashes := 0
	run := &faults.Run{
		CrashProgram: func(string, bool) error { crashes++; return nil },
		WaitForRest:  func(context.Context) error { return nil },
		RecordFault:  func(faults.Place, string) {},
	}
	all := []faults.Fault{{Kind: faults.Crash, Step: 1}}
	for step, want := range []int{0, 1} {
		crashes = 0
		i := newStepInjector(all, step, func(<-chan struct{}) *faults.Run { return run })
		for _, inject := range []func(context.Context) error{i.arm, i.beforeStep, i.afterStep} {
			if err := inject(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		i.end()
		if crashes != want || i.hasFaults() != (want > 0) {
			t.Errorf("in step %d the program crashed %d times, want %d", step, crashes, want)
		}
	}
}
