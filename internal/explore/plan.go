package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/internal/explore/faults"
	"github.com/yare-go/yare/internal/explore/finding"
	"github.com/yare-go/yare/internal/explore/history"
	"github.com/yare-go/yare/internal/explore/schedule"
)

// Transition is the kind of a run without a fault, in which the user changes the declared state.
const Transition schedule.Kind = "transition"

// DefaultKinds returns the kinds of faults that an exploration covers by default.
func DefaultKinds() []schedule.Kind {
	return slices.Concat([]schedule.Kind{schedule.Idle, schedule.Crash}, requestKinds(), watchKinds(), foreignKinds(), leaderKinds(), []schedule.Kind{schedule.Stale, Transition})
}

// requestKinds returns the kinds that concern any request. The committed ones and the conflict concern
// writes only.
func requestKinds() []schedule.Kind {
	return []schedule.Kind{
		schedule.Refused429, schedule.CommittedReset, schedule.Refused500, schedule.Conflict, schedule.Refused503,
		schedule.Committed500, schedule.Refused504, schedule.Committed504, schedule.Reset,
	}
}

// watchKinds returns the kinds that concern a stream.
func watchKinds() []schedule.Kind {
	return []schedule.Kind{schedule.WatchLag, schedule.WatchCut, schedule.WatchExpired, schedule.WatchMissed}
}

// foreignKinds returns the kinds of faults by other users and controllers that happen by default.
func foreignKinds() []schedule.Kind {
	return []schedule.Kind{schedule.ForeignEdit, schedule.ForeignDelete, schedule.StripLabels, schedule.StripOwners}
}

// foreignKindsBeyond returns the kinds of faults by other users and controllers that happen only if asked for.
func foreignKindsBeyond() []schedule.Kind {
	return []schedule.Kind{schedule.ForeignRecreate, schedule.StripFinalizers}
}

// kindsBeyond returns all kinds that happen only if that is asked for, besides those of the control plane. Some
// go beyond what a server does, and for others few operators are made.
func kindsBeyond() []schedule.Kind {
	return append(foreignKindsBeyond(), schedule.WatchTwice, schedule.Unreadable, schedule.Restored)
}

// ParseKinds returns the kinds that a name stands for: the name of a kind, or of a group, such as crash, request,
// watch, foreign, leader, plane, transition and stale.
func ParseKinds(name string) ([]schedule.Kind, error) {
	switch name {
	case "request":
		return requestKinds(), nil
	case "watch":
		return watchKinds(), nil
	case "foreign":
		return foreignKinds(), nil
	case string(leaderGroup):
		return leaderKinds(), nil
	case "plane":
		return planeKinds(), nil
	}
	known := slices.Concat(DefaultKinds(), planeKinds(), kindsBeyond())
	if slices.Contains(known, schedule.Kind(name)) {
		return []schedule.Kind{schedule.Kind(name)}, nil
	}
	return nil, fmt.Errorf("there is no kind of fault %q: use crash, request, watch, foreign, leader, plane, transition, or one of %v", name, known)
}

// requestKindsPerPoint is how many kinds of request faults happen at each point. The kinds rotate, so
// that each kind happens at some points.
const requestKindsPerPoint = 3

// plan returns the runs of the exploration, in the order in which they begin. With a budget the seed chooses the
// order, so that runs of each kind are made.
func (e *explorer) plan(ctx context.Context) ([]job, error) {
	kinds := e.options.Only
	if len(kinds) == 0 {
		kinds = DefaultKinds()
	}
	kinds = append(slices.Clone(kinds), e.options.Beyond...)
	has := func(k schedule.Kind) bool { return slices.Contains(kinds, k) }
	var jobs []job
	add := func(f schedule.Fault) {
		if has(f.Kind) {
			jobs = append(jobs, e.jobOf(f))
		}
	}
	points := e.points()
	codes := e.codes()
	later, err := e.laterRestarts()
	if err != nil {
		return nil, err
	}
	rotation, ofRequests := 0, requestKinds()
	for _, p := range points {
		if p.IsWrite() {
			e.coverage.Points.Total++
			for _, restart := range []schedule.Restart{schedule.RestartNow, schedule.RestartAtRest, schedule.RestartNextStep} {
				if restart != schedule.RestartNextStep || later[p.Step] {
					add(schedule.Fault{Kind: schedule.Crash, At: &p, Restart: restart})
				}
			}
		}
		for range requestKindsPerPoint {
			k := ofRequests[rotation%len(ofRequests)]
			for rotation++; !canHappen(k, p, codes[p]); rotation++ {
				k = ofRequests[rotation%len(ofRequests)]
			}
			add(schedule.Fault{Kind: k, At: &p})
		}
	}
	for step := range e.options.Steps {
		add(schedule.Fault{Kind: schedule.Crash, Step: step})
		if later[step] {
			add(schedule.Fault{Kind: schedule.Crash, Step: step, Restart: schedule.RestartNextStep})
		}
		add(schedule.Fault{Kind: schedule.Stale, Step: step})
		for _, stream := range e.streams(step) {
			for _, k := range append(watchKinds(), schedule.WatchTwice) {
				add(schedule.Fault{Kind: k, Stream: stream, Step: step})
			}
		}
	}
	if has(schedule.Idle) {
		idle := job{schedule: schedule.Schedule{Seed: e.options.Seed, Steps: e.options.Steps}, kind: schedule.Idle}
		for step := range e.options.Steps {
			idle.schedule.Faults = append(idle.schedule.Faults, schedule.Fault{Kind: schedule.Idle, Step: step})
		}
		jobs = append(jobs, idle)
	}
	foreign, err := e.planForeign(points)
	if err != nil {
		return nil, err
	}
	for _, f := range foreign {
		add(f)
	}
	for _, f := range e.planLeader(points, has) {
		add(f)
	}
	if has(Transition) {
		transitions, err := e.planTransitions(ctx)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, transitions...)
		if e.appliesTwice() {
			jobs = append(jobs, job{schedule: schedule.Schedule{Seed: e.options.Seed, Steps: e.options.Steps}, kind: Transition, field: "the steps"})
		}
	}
	e.random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	if e.options.Budget == 0 {
		// The longest runs come first. At the end the exploration would wait for them.
		slices.SortStableFunc(jobs, func(a, b job) int { return len(b.schedule.Steps) - len(a.schedule.Steps) })
	}
	unreadable, err := e.planUnreadable(ctx, has)
	if err != nil {
		return nil, err
	}
	for _, f := range slices.Concat(unreadable, e.planRestored(has), e.planPlane(points, has)) {
		jobs = append(jobs, e.jobOf(f))
	}
	return jobs, nil
}

// jobOf returns the run of the steps with one fault.
func (e *explorer) jobOf(f schedule.Fault) job {
	return job{
		schedule: schedule.Schedule{Seed: e.options.Seed, Steps: e.options.Steps, Faults: []schedule.Fault{f}},
		kind:     f.Kind,
	}
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

// canHappen reports whether a fault of a request can happen at a point, which a reference was answered with
// a code: only writes are carried out, and only an object that exists can be changed before.
func canHappen(k schedule.Kind, p schedule.Point, code int) bool {
	switch k {
	case schedule.Committed500, schedule.Committed504, schedule.CommittedReset:
		return p.IsWrite()
	case schedule.Conflict:
		isOfObject := p.IsWrite() && p.Name != "" && p.Verb != "create"
		return isOfObject && code != http.StatusCreated && code != http.StatusNotFound
	}
	return true
}

// codes returns the HTTP statuses of the answers to the requests of the first reference.
func (e *explorer) codes() map[schedule.Point]int {
	codes := make(map[schedule.Point]int)
	for _, r := range e.references[0].requests {
		codes[r.Point] = r.Code
	}
	return codes
}

// points returns the requests that the first two references have in common, in the order of the first one, and
// records the writes that they do not have in common.
func (e *explorer) points() (points []schedule.Point) {
	second := make(map[schedule.Point]bool)
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
func isPoint(r faults.Request) bool {
	switch r.Point.Resource {
	case "", "events", "events.events.k8s.io", "leases.coordination.k8s.io":
		return false
	}
	return r.Point.Step >= 0 && r.Point.Verb != "watch" && !faults.IsReview(r.Point.Resource)
}

// streams returns the resources of which the program received changes on a watch during a step, in each of
// the first two references. Without a change no fault of a watch can happen.
func (e *explorer) streams(step int) (resources []string) {
	has := func(reference *outcome, resource string) bool {
		return slices.ContainsFunc(reference.deliveries, func(d faults.Delivery) bool {
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

// planForeign returns the faults by other users: of the objects that the program has written in the
// first step, besides the objects that the user has applied.
func (e *explorer) planForeign(points []schedule.Point) (all []schedule.Fault, err error) {
	var objects []schedule.Object
	for _, p := range points {
		o := schedule.Object{Resource: p.Resource, Name: p.Name}
		if p.Step != 0 || !p.IsWrite() || p.Subresource != "" || p.Name == "" || slices.Contains(objects, o) {
			continue
		}
		applied, err := e.isApplied(0, o)
		if err != nil {
			return nil, err
		}
		if !applied {
			objects = append(objects, o)
		}
	}
	for _, o := range objects {
		content := e.contentOf(o)
		if content == nil {
			continue // the program has deleted it
		}
		for _, k := range append(foreignKinds(), foreignKindsBeyond()...) {
			f := schedule.Fault{Kind: k, Object: &o}
			if k == schedule.ForeignEdit {
				f.Edit = editOf(o.Resource, content)
			}
			if canMeddle(f, content) {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// canMeddle reports whether a fault by other users changes an object.
func canMeddle(f schedule.Fault, content map[string]any) bool {
	object := unstructured.Unstructured{Object: content}
	switch f.Kind {
	case schedule.ForeignEdit:
		return f.Edit != nil
	case schedule.StripLabels:
		return len(object.GetLabels()) > 0
	case schedule.StripOwners:
		return len(object.GetOwnerReferences()) > 0
	case schedule.StripFinalizers:
		return len(object.GetFinalizers()) > 0
	}
	return true
}

// contentOf returns an object as the first reference shows it after the first step, or nil.
func (e *explorer) contentOf(o schedule.Object) map[string]any {
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
func (e *explorer) isApplied(step int, o schedule.Object) (bool, error) {
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

// freshState is the state of programs that have seen only one value of the samples.
type freshState struct {
	done  chan struct{}
	state history.State
	masks *history.Masks
	err   error
}

// freshRuns is how many runs show the state of a fresh program, so that what differs is masked.
const freshRuns = 2

// freshOf returns the state of programs that have seen only these objects.
func (e *explorer) freshOf(ctx context.Context, text string, objects []json.RawMessage) (*freshState, error) {
	e.mu.Lock()
	f, has := e.fresh[text]
	if !has {
		f = &freshState{done: make(chan struct{})}
		e.fresh[text] = f
	}
	e.mu.Unlock()
	if has {
		select {
		case <-f.done:
			return f, f.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer close(f.done)
	s := schedule.Schedule{Steps: []schedule.Step{{Name: "apply", Apply: objects}}}
	var states []history.State
	for range freshRuns {
		out, err := e.run(ctx, s, e.patient(), expectNothing)
		if err != nil {
			f.err = err
			return nil, err
		}
		e.countRun(&e.coverage.Runs)
		e.countRun(&e.coverage.References)
		states = append(states, out.states[0])
	}
	f.state = states[0]
	f.masks, f.err = history.Mask(states, e.historyOptions())
	return f, f.err
}

// judgeValues returns a judge of a run in which the user changes the declared state: the state after a step must
// be the state of a fresh program that has seen only the values of the step. Objects that the step deletes are
// compared with the references.
func (e *explorer) judgeValues(ctx context.Context, s schedule.Schedule) (judge, error) {
	fresh := make([]*freshState, len(s.Steps))
	for i, step := range s.Steps {
		if len(step.Apply) == 0 {
			continue
		}
		text, objects, err := e.appliedUntil(s.Steps, i)
		if err != nil {
			return nil, err
		}
		if fresh[i], err = e.freshOf(ctx, text, objects); err != nil {
			return nil, err
		}
	}
	return func(step int, state history.State) []finding.Difference {
		if f := fresh[step]; f != nil {
			return f.masks.Compare(f.state, state, Transition)
		}
		return nil
	}, nil
}

// appliedUntil returns the objects that the user has applied and not deleted up to a step, and a text
// that is equal for equal objects.
func (e *explorer) appliedUntil(steps []schedule.Step, step int) (text string, objects []json.RawMessage, err error) {
	latest := make(map[schedule.Object]json.RawMessage)
	for _, s := range steps[:step+1] {
		for _, raw := range s.Apply {
			object, err := e.decode(raw, "")
			if err != nil {
				return "", nil, err
			}
			api, err := e.apiOf(object.GroupVersionKind(), "")
			if err != nil {
				return "", nil, err
			}
			latest[schedule.Object{Resource: resourceName(api.Resource()), Name: object.GetName()}] = raw
		}
		for _, o := range s.Delete {
			delete(latest, o)
		}
	}
	for _, o := range slices.SortedFunc(maps.Keys(latest), func(a, b schedule.Object) int { return strings.Compare(a.String(), b.String()) }) {
		objects = append(objects, latest[o])
		text += canonical(latest[o]) + "\n"
	}
	return text, objects, nil
}
