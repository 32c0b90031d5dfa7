package faults

import "context"

// Idle lets time pass when the step has come to rest: the time of parts moves forward, and any other program is
// restarted. This disturbs nothing, so the program must change nothing.
const Idle Kind = "idle"

// idle is the family of [Idle].
type idle struct{ baseFamily }

func (idle) Describe() Description {
	return Description{Group: string(Idle), Kinds: []Kind{Idle}, IsDefault: true}
}

// Plan plans one run, which is idle after each step.
func (idle) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	if !in.has(Idle) {
		return Plan{}, nil
	}
	return Plan{Runs: [][]Fault{in.afterEachStep(Idle)}}, nil
}

// AfterStep lets time pass for a program at rest, or restarts the program.
func (idle) AfterStep(ctx context.Context, run *Run, _ Fault) error {
	return run.ExpectNoChange(ctx, func() error {
		if advanced, err := run.AdvanceClock(ctx); advanced || err != nil {
			return err
		}
		// A crash is the restart of any program, also of one that does not end in order. At rest a program has nothing to
		// lose.
		return run.CrashProgram("the program is restarted at rest", true)
	})
}
