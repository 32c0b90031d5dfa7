package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/yare-go/yare/explore/internal/finding"
	"github.com/yare-go/yare/explore/internal/history"
	"github.com/yare-go/yare/explore/internal/values"
	"github.com/yare-go/yare/internal/proxy"
	"github.com/yare-go/yare/internal/proxy/faults"
	"github.com/yare-go/yare/kube"
)

// planner plans the runs of an exploration.
type planner struct {
	settings   Settings
	cluster    *cluster
	references *references
	results    *results
	random     *rand.Rand
}

// plan returns the runs of the exploration. With a budget the seed chooses the order, and more has runs for the rest of
// the budget. The runs that need the control plane for themselves come last.
func (p *planner) plan(ctx context.Context) (jobs, more []job, err error) {
	input, err := p.planInput()
	if err != nil {
		return nil, nil, err
	}
	jobs, more, err = p.planFamilies(ctx, input, false)
	if err != nil {
		return nil, nil, err
	}
	var transitions []job
	if slices.ContainsFunc([]faults.Kind{faults.Transition, faults.DeniedInvalid, faults.DeniedConflict},
		func(k faults.Kind) bool { return slices.Contains(input.Kinds, k) }) {
		if transitions, err = p.planTransitions(ctx); err != nil {
			return nil, nil, err
		}
	}
	if slices.Contains(input.Kinds, faults.DeniedInvalid) {
		jobs = append(jobs, p.planInvalidity(input.DeniableAsInvalid(), transitions)...)
	}
	if slices.Contains(input.Kinds, faults.DeniedConflict) {
		jobs = append(jobs, p.planConflicts(input.Objects, transitions)...)
	}
	if slices.Contains(input.Kinds, faults.Transition) {
		jobs = append(jobs, transitions...)
		if p.appliesTwice() {
			jobs = append(jobs, p.newJob(faults.Transition, "the steps"))
		}
	}
	ruled, err := (&ruledStepsPlanner{p}).plan(ctx, input.Kinds)
	if err != nil {
		return nil, nil, err
	}
	jobs = append(jobs, ruled...)
	compared, err := (&comparedChangesPlanner{p.settings, p.cluster, p.results, p.random}).plan(ctx, input.Kinds)
	if err != nil {
		return nil, nil, err
	}
	jobs = append(jobs, compared...)
	p.random.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	p.random.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	if p.settings.Budget == 0 {
		// The longest runs come first. At the end the exploration would wait for them.
		slices.SortStableFunc(jobs, func(a, b job) int { return len(b.schedule.Steps) - len(a.schedule.Steps) })
	}
	alone, moreAlone, err := p.planFamilies(ctx, input, true)
	if err != nil {
		return nil, nil, err
	}
	jobs, more = append(jobs, alone...), append(more, moreAlone...)
	p.recordWithoutOpportunity(input.Kinds, jobs)
	return jobs, more, nil
}

// planFamilies returns the runs of the families of faults that need the control plane for themselves, or of all others.
// It records why kinds of faults cannot happen.
func (p *planner) planFamilies(
	ctx context.Context, input *faults.PlanInput, areAlone bool,
) (jobs, more []job, err error) {
	for _, family := range faults.Families() {
		if family.Describe().NeedsOwnControlPlane != areAlone {
			continue
		}
		plan, err := family.Plan(ctx, input)
		if err != nil {
			return nil, nil, err
		}
		p.results.update(func(c *finding.Coverage) { maps.Copy(c.NotApplicable, plan.NotApplicable) })
		for _, all := range plan.Runs {
			jobs = append(jobs, p.newJob(all[0].Kind, "", all...))
		}
		for _, all := range plan.MoreRuns {
			more = append(more, p.newJob(all[0].Kind, "", all...))
		}
	}
	return jobs, more, nil
}

// recordWithoutOpportunity records why no run of some kinds is planned.
func (p *planner) recordWithoutOpportunity(kinds []faults.Kind, jobs []job) {
	p.results.update(func(c *finding.Coverage) {
		for _, k := range p.settings.Except {
			c.NotApplicable[k] = "it is left out by --except"
		}
		for _, k := range kinds {
			d := faults.FamilyOf(k).Describe()
			isPlanned := slices.ContainsFunc(jobs, func(j job) bool { return j.kind == k })
			if !isPlanned && c.NotApplicable[k] == "" && c.NotApplicable[faults.Kind(d.Group)] == "" {
				c.NotApplicable[k] = cmp.Or(d.WhyNotPlanned, "the runs without faults have shown no opportunity")
			}
		}
	})
}

// planInvalidity returns runs in which a write of the first step is denied as invalid until the user makes one of the
// changes: one run for each point of an exhaustive exploration, else one.
func (p *planner) planInvalidity(points []proxy.Point, changes []job) (jobs []job) {
	if len(points) == 0 || len(changes) == 0 {
		return nil
	}
	p.random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	if !p.settings.IsExhaustive {
		points = points[:1]
	}
	for i := range points {
		change := changes[p.random.IntN(len(changes))]
		j := p.newJob(faults.DeniedInvalid, change.changed, faults.Fault{Kind: faults.DeniedInvalid, At: &points[i]})
		j.schedule.Steps = change.schedule.Steps[:2]
		jobs = append(jobs, j)
	}
	return jobs
}

// planConflicts returns runs in which the user makes one of the changes, and the writes of an object that follow are
// denied with a conflict for a time: one run for each object that the program has made. The references may have no such
// write.
func (p *planner) planConflicts(objects []faults.WrittenObject, changes []job) (jobs []job) {
	if len(changes) == 0 {
		return nil
	}
	for i := range objects {
		change := changes[p.random.IntN(len(changes))]
		j := p.newJob(faults.DeniedConflict, change.changed,
			faults.Fault{Kind: faults.DeniedConflict, Step: 1, Object: &objects[i].Object})
		j.schedule.Steps = change.schedule.Steps[:2]
		jobs = append(jobs, j)
	}
	return jobs
}

// newJob returns a run of the steps. changed is [job.changed].
func (p *planner) newJob(kind faults.Kind, changed string, all ...faults.Fault) job {
	return job{
		schedule: finding.Schedule{Seed: p.settings.Seed, Steps: p.settings.Steps, Faults: all}, kind: kind, changed: changed,
	}
}

// planInput returns what the families of faults plan from.
func (p *planner) planInput() (*faults.PlanInput, error) {
	later, err := p.laterRestarts()
	if err != nil {
		return nil, err
	}
	points, unrepeated := p.references.points()
	p.results.update(func(c *finding.Coverage) {
		c.Points.Total += countWrites(points)
		c.Unrepeated = append(c.Unrepeated, unrepeated...)
	})
	input := &faults.PlanInput{
		Kinds: plannedKinds(p.settings), Points: points, Codes: p.references.codes(),
		IsElecting:        p.references.election != nil,
		CanStopComponents: p.settings.Components != nil, IsLimited: p.settings.Budget > 0,
		IsExhaustive: p.settings.IsExhaustive, Random: p.random, Cluster: p.cluster,
		SampleContents: p.settings.Steps[0].Apply, HasWebhooks: hasWebhooks(p.references.runs[0].requests),
		HasExternalSystem: p.settings.ExternalSystem != nil && p.settings.ExternalSystem.Address != "",
	}
	for i := range p.settings.Steps {
		input.Steps = append(input.Steps, faults.Step{
			Streams: p.references.streams(i), ExternalParts: p.references.externalParts(i), CanRestartLater: later[i],
			HasDeletion: len(p.settings.Steps[i].Delete) > 0,
		})
	}
	names := history.NewNames()
	for _, raw := range p.settings.Steps[0].Apply {
		o, err := p.cluster.objectOf(raw)
		if err != nil {
			return nil, err
		}
		o.Name = names.Normalize(o.Name)
		input.SampleObjects = append(input.SampleObjects, o)
	}
	input.Objects, err = p.writtenObjects(points)
	return input, err
}

// plannedKinds returns the kinds that an exploration plans. Where components of the control plane may be stopped, the
// kinds that stop them are planned too, unless the settings name some of them.
func plannedKinds(s Settings) []faults.Kind {
	kinds := s.Only
	if len(kinds) == 0 {
		kinds = faults.DefaultKinds()
	}
	kinds = slices.Concat(kinds, s.OptIn)
	ofPlane := faults.FamilyOf(faults.EtcdKilled).Describe().Kinds
	isNamed := slices.ContainsFunc(ofPlane, func(k faults.Kind) bool { return slices.Contains(kinds, k) })
	if s.Components != nil && !isNamed {
		kinds = append(kinds, ofPlane...)
	}
	return slices.DeleteFunc(kinds, func(k faults.Kind) bool { return slices.Contains(s.Except, k) })
}

func countWrites(points []proxy.Point) (n int) {
	for _, p := range points {
		if p.IsWrite() {
			n++
		}
	}
	return n
}

// writtenObjects returns the objects that the program has written in the first step and not deleted, without the
// objects applied by the user.
func (p *planner) writtenObjects(points []proxy.Point) (all []faults.WrittenObject, err error) {
	for _, point := range points {
		o := faults.Object{Resource: point.Resource, Name: point.Name}
		isKnown := slices.ContainsFunc(all, func(w faults.WrittenObject) bool { return w.Object == o })
		if point.Step != 0 || !point.IsWrite() || point.Subresource != "" || point.Name == "" || isKnown {
			continue
		}
		applied, err := p.cluster.applies(p.settings.Steps[0], o)
		if err != nil {
			return nil, err
		}
		if content := p.references.contentOf(o); content != nil && !applied {
			all = append(all, faults.WrittenObject{Object: o, Content: content, Edit: editOf(o.Resource, content)})
		}
	}
	return all, nil
}

// appliesTwice reports whether the steps themselves change what they have applied. Then the state after
// each step is also compared with the state of a program that has seen only the objects of the step.
func (p *planner) appliesTwice() bool {
	count := 0
	for _, step := range p.settings.Steps {
		if len(step.Apply) > 0 {
			count++
		}
	}
	return count > 1
}

// laterRestarts returns for each step whether a program that crashes in the step can start again after
// the next step. A program that is down keeps objects with its finalizers, so that the user cannot make an
// object again in the next step.
func (p *planner) laterRestarts() ([]bool, error) {
	later := make([]bool, len(p.settings.Steps))
	for i := range len(later) - 1 {
		later[i] = true
		for _, o := range p.settings.Steps[i].Delete {
			isAppliedAgain, err := p.cluster.applies(p.settings.Steps[i+1], o)
			if err != nil {
				return nil, err
			}
			later[i] = later[i] && !isAppliedAgain
		}
	}
	return later, nil
}

// maxChain is how many changes of the declared state follow one another in a run.
const maxChain = 10

// planTransitions returns runs in which the user changes fields of the samples there and back, up to
// maxChain changes in a run.
func (p *planner) planTransitions(ctx context.Context) (jobs []job, err error) {
	for i, raw := range p.settings.Steps[0].Apply {
		sample, err := p.cluster.decode(raw, "")
		if err != nil {
			return nil, err
		}
		crd, hasDefinition, err := p.definitionOf(ctx, sample)
		if err != nil {
			return nil, err
		}
		if !hasDefinition {
			continue
		}
		transitions, err := p.transitionsOf(ctx, sample, crd)
		if err != nil {
			return nil, err
		}
		for from := 0; from < len(transitions); {
			to := from + 1
			for to < len(transitions) && to-from < maxChain && transitions[to].Field == transitions[from].Field {
				to++
			}
			j, err := p.transitionJob(i, transitions[from:to])
			if err != nil {
				return nil, err
			}
			jobs, from = append(jobs, j), to
		}
	}
	return jobs, nil
}

// definitionOf returns the CRD of an object. It reports whether the object is of a custom kind.
func (p *planner) definitionOf(
	ctx context.Context, object *unstructured.Unstructured,
) (crd []byte, hasDefinition bool, err error) {
	r, err := p.cluster.resourceOfKind(object.GroupVersionKind())
	if err != nil {
		return nil, false, err
	}
	definition, err := p.cluster.Definitions().Get(ctx, r.String())
	switch {
	case kube.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	crd, err = definition.MarshalJSON()
	return crd, true, err
}

// transitionsOf returns the transitions of a sample that the server accepts, and records what is
// covered.
func (p *planner) transitionsOf(
	ctx context.Context, sample *unstructured.Unstructured, crd []byte,
) ([]values.Transition, error) {
	definition, err := values.ParseDefinition(crd, sample.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	all, fields, err := values.Transitions(definition, sample.Object, valuesOf(sample, p.settings))
	if err != nil {
		return nil, err
	}
	api, err := p.cluster.APIOf(sample.GroupVersionKind(), dryRunNamespace)
	if err != nil {
		return nil, err
	}
	refusals := 0
	var accepted []values.Transition
	for _, t := range all {
		refused := ""
		for _, object := range t.Objects {
			if refused, err = values.DryRun(ctx, api, object); err != nil {
				return nil, err
			}
			if refused != "" {
				break
			}
		}
		if refused == "" {
			accepted = append(accepted, t)
		} else {
			refusals++
		}
	}
	var changeable []string
	p.results.update(func(c *finding.Coverage) {
		c.Transitions.Total += len(all)
		c.Refused += refusals
		for _, field := range fields {
			c.Fields.Total++
			if slices.ContainsFunc(accepted, func(t values.Transition) bool { return t.Field == field.Path }) {
				changeable = append(changeable, field.Path)
			} else {
				c.FieldsWithoutValues[field.Path] = cmp.Or(field.Reason, "the server refused all values")
			}
		}
	})
	p.results.addFields(changeable)
	return accepted, nil
}

// valuesOf returns what the fields of a sample are changed to.
func valuesOf(sample *unstructured.Unstructured, s Settings) values.Options {
	options := values.Options{Values: s.Values, Pairs: fieldPairs, Seed: s.Seed}
	if second := secondOf(s.SecondSamples, sample); second != nil {
		options.Second = second.Object
	}
	return options
}

// dryRunNamespace is where values are tried without storing them.
const dryRunNamespace = "default"

// fieldPairs is how many transitions change two fields at once.
const fieldPairs = 4

// transitionJob returns the job whose run applies the sample, and then, for each transition, its values and the sample.
func (p *planner) transitionJob(index int, transitions []values.Transition) (job, error) {
	first := p.settings.Steps[0]
	steps := []finding.Step{first}
	var transitionSteps []int
	with := func(raw json.RawMessage) []json.RawMessage {
		objects := slices.Clone(first.Apply)
		objects[index] = raw
		return objects
	}
	for _, t := range transitions {
		for i, o := range t.Objects {
			raw, err := json.Marshal(o)
			if err != nil {
				return job{}, err
			}
			steps = append(steps, finding.Step{Name: t.StepName(i), Apply: with(raw)})
		}
		transitionSteps = append(transitionSteps, len(steps)-1)
		steps = append(steps, finding.Step{Name: t.Field + ": as in the sample", Apply: first.Apply})
	}
	return job{
		schedule: finding.Schedule{Seed: p.settings.Seed, Steps: steps}, kind: faults.Transition,
		changed: transitions[0].Field, transitionSteps: transitionSteps,
	}, nil
}
