package engine

import (
	"context"
	"testing"

	"github.com/yare-go/yare/internal/proxy/faults"
)

// crashCounter are actions that count crashes of the program.
type crashCounter struct {
	faults.Actions
	crashes int
}

func (c *crashCounter) CrashProgram(string, bool) error   { c.crashes++; return nil }
func (c *crashCounter) WaitForRest(context.Context) error { return nil }
func (c *crashCounter) RecordFault(faults.Place, string)  {}

// A step has only its own faults, and faults without a trigger happen after the step.
func TestStepInjector(t *testing.T) {
	t.Parallel()
	all := []faults.Fault{{Kind: faults.Crash, Step: 1}}
	for step, want := range []int{0, 1} {
		actions := &crashCounter{}
		i := newStepInjector(all, step, func(<-chan struct{}) *faults.Run { return &faults.Run{Actions: actions} })
		for _, inject := range []func(context.Context) error{i.arm, i.beforeStep, i.afterStep} {
			if err := inject(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		i.end()
		if actions.crashes != want || i.hasFaults() != (want > 0) {
			t.Errorf("in step %d the program crashed %d times, want %d", step, actions.crashes, want)
		}
	}
}
