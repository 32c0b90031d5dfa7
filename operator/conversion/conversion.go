// Package conversion has the part by which API servers convert the objects of a kind between its versions: [Between].
//
//	operator.Main(controller.New(reconcile), conversion.Between(toV2, toV1))
//
// The package brings the command migrate. docs/guide/versions.md describes the life of a version.
package conversion

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/internal/calls"
)

// Between returns a part by which the API server converts the objects of a kind between the versions A and B. toB fills
// b, which is new, from a. toA fills a, which is new, from b:
//
//	operator.Main(controller.New(reconcile), conversion.Between(toV2, toV1))
//
//	func toV2(a *v1.CronJob, b *v2.CronJob) { b.Spec.Minute, b.Spec.Hour = split(a.Spec.Schedule) }
//	func toV1(b *v2.CronJob, a *v1.CronJob) { a.Spec.Schedule = join(b.Spec.Minute, b.Spec.Hour) }
//
// No value is lost, whatever the functions do. What a version cannot express is kept in an annotation of the object
// whose key begins with versions.yare.dev/, and is put back when the object returns to its original version. An object
// that converts without loss has no such annotation. The metadata of the objects is copied: what a function does to the
// metadata has no effect.
//
// The result of a function must follow from its input alone: the same object is converted many times, by all replicas.
// Several calls run at once. A panic of a function is logged, and its object is delivered with the annotation
// versions.yare.dev/incomplete.
//
// The converters of a kind connect all its versions as a tree, also versions that are not served. Three versions have
// two converters. One Definition of the kind sets Storage. Controllers should use the storage version, because each
// object of another version costs a call. Every replica answers, also a standby. While no replica answers, requests in
// a version that is not the storage version fail, and so does the deletion of namespaces: see docs/guide/versions.md.
func Between[A, B any, PA kube.DefinedObjectOf[A], PB kube.DefinedObjectOf[B]](
	toB func(a *A, b *B), toA func(b *B, a *A),
) operator.Part {
	p := part{step: convert.NewStep[A, B, PA, PB](toB, toA), needs: kube.Needs{EveryReplica: true}}
	if p.step.Err() == nil {
		p.needs.Defines = []kube.Type{p.step.First, p.step.Second}
	}
	return p
}

// part is a part of [Between].
type part struct {
	step  *convert.Step
	needs kube.Needs
}

// Needs returns the definitions of both versions.
func (p part) Needs() (kube.Needs, error) { return p.needs, p.step.Err() }

// Start waits for the end of the program: the program serves all conversions together.
func (p part) Start(ctx context.Context, _ *controller.Runtime) error {
	<-ctx.Done()
	return nil
}

// FeatureName returns the name of the feature that serves the conversions: see [feature.Bringer].
func (part) FeatureName() string { return calls.Name }

// NewFeature returns the feature that serves the conversions: see [feature.Bringer].
func (part) NewFeature() feature.Feature { return calls.New() }

// HandlerName returns the name of the handler of all conversions: see [calls.Source].
func (part) HandlerName() string { return "operator/conversion" }

// NewHandler returns the handler of all conversions of a program: see [calls.Source].
func (part) NewHandler(p *feature.Program) (calls.Handler, error) {
	kinds, err := kindsOf(p.Parts)
	return &handler{program: p, kinds: kinds}, err
}

// CheckRoundTrips does what the function [checkRoundTrips] does. Package yaretest calls the method, by an interface. No
// program calls it.
func (part) CheckRoundTrips(parts []operator.Part, seed uint64, count int,
	report func(kind string, problems []string, kept map[string][]string),
	sample func(from, to wire.Resource, object, converted []byte) error,
) error {
	return checkRoundTrips(parts, seed, count, report, sample)
}

// kindsOf returns the kinds that parts convert, with all their versions. Parts that are not valid are left out, because
// the program reports them.
func kindsOf(parts []any) (kinds []*convert.Kind, err error) {
	var defines []kube.Type
	byKind := make(map[string][]*convert.Step)
	for _, each := range parts {
		valid, ok := each.(operator.Part)
		if !ok {
			continue
		}
		needs, err := valid.Needs()
		if err != nil {
			continue
		}
		defines = append(defines, needs.Defines...)
		if p, ok := each.(part); ok {
			gk := p.step.First.Resource.GroupKind().String()
			byKind[gk] = append(byKind[gk], p.step)
		}
	}
	var errs []error
	for _, gk := range slices.Sorted(maps.Keys(byKind)) {
		kind, err := newKind(byKind[gk][0].First.Resource.GroupKind(), defines, byKind[gk])
		errs = append(errs, err)
		kinds = append(kinds, kind)
	}
	return kinds, errors.Join(errs...)
}

// newKind returns a kind with all its versions among defines.
func newKind(gk schema.GroupKind, defines []kube.Type, steps []*convert.Step) (*convert.Kind, error) {
	var versions []convert.Version
	isKnown := make(map[string]bool)
	var errs []error
	for _, t := range defines {
		if t.Definition == nil || t.Resource.GroupKind() != gk || isKnown[t.Go.String()+t.Go.PkgPath()] {
			continue
		}
		isKnown[t.Go.String()+t.Go.PkgPath()] = true
		v, err := convert.VersionOf(t)
		errs = append(errs, err)
		versions = append(versions, v)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return convert.NewKind(versions, steps)
}
