package operator

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator/internal/webhook/conversion"
)

// partWithConverter is a part with a converter between two versions of a kind.
type partWithConverter interface{ converter() *conversion.Step }

// convertersOf returns the converters of parts, also those of parts inside of other parts.
func convertersOf(parts []Part) (steps []*conversion.Step) {
	for _, part := range partsWithin(parts) {
		if p, ok := part.(partWithConverter); ok {
			steps = append(steps, p.converter())
		}
	}
	return steps
}

// convertedKinds returns the kinds for which parts have a converter.
func convertedKinds(parts []Part) map[schema.GroupKind]bool {
	kinds := make(map[schema.GroupKind]bool)
	for _, step := range convertersOf(parts) {
		kinds[step.First.Resource.GroupKind()] = true
	}
	return kinds
}

// conversionsOf returns the conversions of parts. It reports false if there are none. The error names everything that
// is wrong with the converters. Parts that are not valid are left out, because needsOf reports them.
func conversionsOf(parts []Part) (c conversionService, isFound bool, err error) {
	var valid []Part
	var defines []kube.Type
	for _, part := range parts {
		if part == nil {
			continue
		}
		if needs, err := part.Needs(); err == nil {
			valid = append(valid, part)
			defines = append(defines, needs.Defines...)
		}
	}
	code, err := conversionCodeIn(valid)
	if err != nil {
		return nil, false, nil //nolint:nilerr // there are no conversions
	}
	c, err = code.makeConversions(defines, convertersOf(valid))
	return c, err == nil, err
}
