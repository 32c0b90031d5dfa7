package operator

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/webhook/conversion"
)

// conversionCodePart is a part that brings the [conversionCode]: each [converterPart].
type conversionCodePart interface{ conversionCode() conversionCode }

// conversionCode acts for all conversions of a program. A program without a converter has no code for them: see
// part_code.go.
type conversionCode interface {
	// makeConversions returns the conversions of the kinds among defines that steps are for. steps are all converters of
	// the program.
	makeConversions(defines []kube.Type, steps []*conversion.Step) (conversionService, error)
	migrate(ctx context.Context, m migrator, o options, needs kube.Needs) error
}

// conversionCodeIn returns the code that parts bring, or an error if the program has no converter.
func conversionCodeIn(parts []Part) (conversionCode, error) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(conversionCodePart); ok {
			return p.conversionCode(), nil
		}
	}
	return nil, errors.New("the program has no converter, so it has no versions to migrate: add operator.Convert to its parts, also for versions with equal fields")
}

// linkedConversionCode makes each part that embeds it a [conversionCodePart].
type linkedConversionCode struct{}

func (linkedConversionCode) conversionCode() conversionCode { return &programConversionCode{} }

// programConversionCode implements [conversionCode].
type programConversionCode struct{}

// makeConversions returns the conversions of the kinds among defines that steps are for.
func (*programConversionCode) makeConversions(
	defines []kube.Type, steps []*conversion.Step,
) (conversionService, error) {
	byKind := make(map[string][]*conversion.Step) // by the text of the kind: a further type to sort makes programs larger
	for _, s := range steps {
		gk := s.First.Resource.GroupKind().String()
		byKind[gk] = append(byKind[gk], s)
	}
	c := &programConversions{}
	var errs []error
	for _, gk := range slices.Sorted(maps.Keys(byKind)) {
		kind, err := newConvertedKind(byKind[gk][0].First.Resource.GroupKind(), defines, byKind[gk])
		errs = append(errs, err)
		c.kinds = append(c.kinds, kind)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// migrate does what [migrator.run] does.
func (*programConversionCode) migrate(ctx context.Context, m migrator, o options, needs kube.Needs) error {
	return m.run(ctx, o, needs)
}

// newConvertedKind returns a kind with all its versions among defines.
func newConvertedKind(gk schema.GroupKind, defines []kube.Type, steps []*conversion.Step) (*conversion.Kind, error) {
	var versions []conversion.Version
	isKnown := make(map[string]bool)
	var errs []error
	for _, t := range defines {
		if t.Definition == nil || t.Resource.GroupKind() != gk || isKnown[t.Go.String()+t.Go.PkgPath()] {
			continue
		}
		isKnown[t.Go.String()+t.Go.PkgPath()] = true
		v, err := conversion.VersionOf(t)
		errs = append(errs, err)
		versions = append(versions, v)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return conversion.NewKind(versions, steps)
}
