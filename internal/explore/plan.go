package explore

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
)

// plan returns the runs of the exploration, in the order in which they begin. With a budget the seed chooses the
// order, so that runs of each kind are made. The runs that need the control plane for themselves come last.
func (e *explorer) plan(ctx context.Context) ([]job, error) {
	references, err := e.opportunities()
	if err != nil {
		return nil, err
	}
	e.coverage.Points.Total += countWrites(references.Points)
	jobs, err := e.planFamilies(ctx, references, false)
	if err != nil {
		return nil, err
	}
	if slices.Contains(references.Kinds, faults.Transition) {
		transitions, err := e.planTransitions(ctx)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, transitions...)
		if e.appliesTwice() {
			jobs = append(jobs, e.newJob(faults.Transition, "the steps"))
		}
	}
	e.random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	if e.options.Budget == 0 {
		// The longest runs come first. At the end the exploration would wait for them.
		slices.SortStableFunc(jobs, func(a, b job) int { return len(b.schedule.Steps) - len(a.schedule.Steps) })
	}
	alone, err := e.planFamilies(ctx, references, true)
	return append(jobs, alone...), err
}

// planFamilies returns the runs of the families of faults that need the control plane for themselves, or of all others.
func (e *explorer) planFamilies(ctx context.Context, r *faults.References, areAlone bool) (jobs []job, err error) {
	for _, family := range faults.Families() {
		if family.Describe().IsAlone != areAlone {
			continue
		}
		runs, err := family.Plan(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, all := range runs {
			jobs = append(jobs, e.newJob(all[0].Kind, "", all...))
		}
	}
	return jobs, nil
}

// newJob returns a run of the steps.
func (e *explorer) newJob(kind faults.Kind, field string, all ...faults.Fault) job {
	return job{schedule: schedule.Schedule{Seed: e.options.Seed, Steps: e.options.Steps, Faults: all}, kind: kind, field: field}
}

// opportunities returns what the references have shown.
func (e *explorer) opportunities() (*faults.References, error) {
	kinds := e.options.Only
	if len(kinds) == 0 {
		kinds = faults.DefaultKinds()
	}
	later, err := e.laterRestarts()
	if err != nil {
		return nil, err
	}
	r := &faults.References{
		Kinds: slices.Concat(kinds, e.options.Beyond), Points: e.points(), Codes: e.codes(), IsElecting: e.election != nil,
		HasPlane: e.options.Plane != nil, IsLimited: e.options.Budget > 0, Random: e.random, Cluster: e.cluster,
		NotApplicable: e.coverage.NotApplicable, Sample: firstSample(e.options.Steps),
	}
	for i := range e.options.Steps {
		r.Steps = append(r.Steps, faults.Step{Streams: e.streams(i), CanRestartLater: later[i]})
	}
	r.Objects, err = e.writtenObjects(r.Points)
	return r, err
}

// firstSample returns the first object that the user applies in the first step, or nil.
func firstSample(steps []schedule.Step) json.RawMessage {
	if len(steps[0].Apply) == 0 {
		return nil
	}
	return steps[0].Apply[0]
}

func countWrites(points []proxy.Point) (n int) {
	for _, p := range points {
		if p.IsWrite() {
			n++
		}
	}
	return n
}

// writtenObjects returns the objects that the program has written in the first step and not deleted, besides the
// objects that the user has applied.
func (e *explorer) writtenObjects(points []proxy.Point) (all []faults.WrittenObject, err error) {
	for _, p := range points {
		o := faults.Object{Resource: p.Resource, Name: p.Name}
		isKnown := slices.ContainsFunc(all, func(w faults.WrittenObject) bool { return w.Object == o })
		if p.Step != 0 || !p.IsWrite() || p.Subresource != "" || p.Name == "" || isKnown {
			continue
		}
		applied, err := e.isApplied(0, o)
		if err != nil {
			return nil, err
		}
		if content := e.contentOf(o); content != nil && !applied {
			all = append(all, faults.WrittenObject{Object: o, Content: content, Edit: editOf(o.Resource, content)})
		}
	}
	return all, nil
}

// appliesTwice reports whether the steps themselves change what they have applied. Then the state after
// each step is also compared with the state of a program that has seen only the objects of the step.
func (e *explorer) appliesTwice() bool {
	count := 0
	for _, step := range e.options.Steps {
		if len(step.Apply) > 0 {
			count++
		}
	}
	return count > 1
}

// codes returns the HTTP statuses of the answers to the requests of the first reference.
func (e *explorer) codes() map[proxy.Point]int {
	codes := make(map[proxy.Point]int)
	for _, r := range e.references[0].requests {
		codes[r.Point] = r.Code
	}
	return codes
}

// points returns the requests that the first two references have in common, in the order of the first one, and
// records the writes that they do not have in common.
func (e *explorer) points() (points []proxy.Point) {
	second := make(map[proxy.Point]bool)
	for _, r := range e.references[1].requests {
		second[r.Point] = true
	}
	for _, r := range e.references[0].requests {
		switch {
		case !isPoint(r) || slices.Contains(points, r.Point):
		case second[r.Point]:
			points = append(points, r.Point)
		case r.Point.IsWrite():
			e.coverage.Unrepeated = append(e.coverage.Unrepeated, r.Point.String())
		}
	}
	return points
}

// isPoint reports whether faults happen at a request: discovery, leases, Events, reviews and what the program
// asks before the first step are left out, and watches have kinds of their own.
func isPoint(r proxy.Request) bool {
	switch r.Point.Resource {
	case "", "events", "events.events.k8s.io", "leases.coordination.k8s.io":
		return false
	}
	return r.Point.Step >= 0 && r.Point.Verb != "watch" && !proxy.IsReview(r.Point.Resource)
}

// streams returns the resources of which the program received changes on a watch during a step, in each of
// the first two references. Without a change no fault of a watch can happen.
func (e *explorer) streams(step int) (resources []string) {
	has := func(reference *outcome, resource string) bool {
		return slices.ContainsFunc(reference.deliveries, func(d proxy.Delivery) bool {
			return d.Resource == resource && d.Step == step && d.Type != ""
		})
	}
	for _, d := range e.references[0].deliveries {
		if !slices.Contains(resources, d.Resource) && has(e.references[0], d.Resource) && has(e.references[1], d.Resource) {
			resources = append(resources, d.Resource)
		}
	}
	return resources
}

// contentOf returns an object as the first reference shows it after the first step, or nil.
func (e *explorer) contentOf(o faults.Object) map[string]any {
	reference := e.references[0]
	names := history.NewNames(reference.history.Namespaces...)
	for _, v := range reference.states[0].Objects() {
		if v.Resource == o.Resource && names.Normalize(v.Name) == o.Name {
			return v.Object
		}
	}
	return nil
}

// laterRestarts returns for each step whether a program that crashes in the step can start again after
// the next step. A program that is down keeps objects with its finalizers, so that the user cannot make an
// object again in the next step.
func (e *explorer) laterRestarts() ([]bool, error) {
	later := make([]bool, len(e.options.Steps))
	for i := range len(later) - 1 {
		later[i] = true
		for _, o := range e.options.Steps[i].Delete {
			again, err := e.isApplied(i+1, o)
			if err != nil {
				return nil, err
			}
			later[i] = later[i] && !again
		}
	}
	return later, nil
}

// isApplied reports whether the user applies an object in a step.
func (e *explorer) isApplied(step int, o faults.Object) (bool, error) {
	for _, raw := range e.options.Steps[step].Apply {
		object, err := e.decode(raw, "")
		if err != nil {
			return false, err
		}
		api, err := e.apiOf(object.GroupVersionKind(), "")
		if err != nil {
			return false, err
		}
		if resourceName(api.Resource()) == o.Resource && object.GetName() == o.Name {
			return true, nil
		}
	}
	return false, nil
}
