package faults

import (
	"context"
	"fmt"
	"net/http"

	"github.com/yare-go/yare/internal/proxy"
)

// Crash cuts the program off at the point, kills it, and starts it again: see [Fault.Restart].
// The server does not receive the request. A crash between the request and its answer is the
// same for the server as a crash at the next point. Without a point, the program crashes when the step has come to
// rest.
const Crash Kind = "crash"

// crash is the family of [Crash].
type crash struct{ baseFamily }

func (crash) Describe() Description {
	return Description{Group: string(Crash), Kinds: []Kind{Crash}, IsDefault: true}
}

// Plan plans crashes at each write with all restarts, and after each step.
func (crash) Plan(_ context.Context, in *PlanInput) (Plan, error) {
	if !in.has(Crash) {
		return Plan{}, nil
	}
	var all []Fault
	for _, p := range in.writes() {
		all = append(all, Fault{Kind: Crash, At: &p}, Fault{Kind: Crash, At: &p, Restart: RestartAtRest})
		if in.Steps[p.Step].CanRestartLater {
			all = append(all, Fault{Kind: Crash, At: &p, Restart: RestartNextStep})
		}
	}
	for i, step := range in.Steps {
		all = append(all, Fault{Kind: Crash, Step: i})
		if step.CanRestartLater {
			all = append(all, Fault{Kind: Crash, Step: i, Restart: RestartNextStep})
		}
	}
	return newPlan(all), nil
}

func (crash) Text(f Fault) string {
	where := fmt.Sprintf("after the last write of step %d", f.Step+1)
	if f.At != nil {
		where = "at " + f.At.String()
	}
	when := map[Restart]string{
		RestartNow: "at once", RestartAtRest: "at rest", RestartNextStep: "after the next step",
	}[f.Restart]
	return fmt.Sprintf("crash %s, restart %s", where, when)
}

func (crash) arm(a *Armed, _ stepContext) (effect, error) {
	return newAtPoint(a, func(x *proxy.Exchange, _ *http.Request, _ proxy.Next) (*http.Response, error) {
		x.Session.CutOff()
		a.recordTriggered()
		return nil, proxy.ErrBroken
	})
}

func (crash) AtTrigger(_ context.Context, run *Run, a *Armed) error {
	return run.CrashProgram(a.fault.String(), a.fault.Restart == RestartNow)
}

func (crash) AtRest(run *Run, f Fault) error {
	if f.Restart != RestartAtRest {
		return nil
	}
	return run.RestartProgram()
}

func (crash) AfterStep(_ context.Context, run *Run, f Fault) error {
	return run.CrashProgram("crash after the last write", f.Restart == RestartNow)
}
