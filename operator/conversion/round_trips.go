package conversion

import (
	"github.com/yare-go/yare/internal/feature"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator"
	"github.com/yare-go/yare/operator/conversion/internal/convert"
	"github.com/yare-go/yare/operator/conversion/internal/samples"
)

// checkRoundTrips converts count random objects of each version of each kind with a converter among parts, and partial
// objects, to all other versions and back. The same seed gives the same objects.
//
// report is called once for each kind: with what breaks a law of conversions, and with the fields whose values only an
// annotation keeps, by the step, such as "v2 to v1". A value that is false, zero or empty does not count. sample is
// called with some objects in a version that is served, and with what they are in another version. checkRoundTrips
// returns an error of sample, or what is wrong with the converters.
func checkRoundTrips(parts []operator.Part, seed uint64, count int,
	report func(kind string, problems []string, kept map[string][]string),
	sample func(from, to wire.Resource, object, converted []byte) error,
) error {
	var all []any
	for _, p := range feature.PartsWithin(parts) {
		all = append(all, p)
	}
	kinds, err := kindsOf(all)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		var objects, nonZero [][]byte
		for _, from := range k.Versions() {
			g := samples.New(from.Resource, from.Schema, seed)
			objects = append(objects, g.Partial()...)
			for range count / 2 {
				objects, nonZero = append(objects, g.Whole()), append(nonZero, g.NonZero())
			}
		}
		laws, nonZeroLaws := convert.CheckLaws(k, objects), convert.CheckLaws(k, nonZero)
		problems := append(laws.Problems, nonZeroLaws.Problems...)
		for _, reason := range append(laws.Incomplete, nonZeroLaws.Incomplete...) {
			problems = append(problems, "a conversion leaves something out: "+reason)
		}
		// Most Go types leave out what is false, null or empty. The fields that can be so are of no interest here.
		report(k.GroupKind().String(), problems, nonZeroLaws.Kept)
		if err := sampleConversions(k, seed, sample); err != nil {
			return err
		}
	}
	return nil
}

// maxSamples bounds the samples for each pair of versions.
const maxSamples = 40

// sampleConversions calls sample with objects of each version of k that is served, and what they are in each other one.
func sampleConversions(
	k *convert.Kind, seed uint64, sample func(from, to wire.Resource, object, converted []byte) error,
) error {
	for _, from := range k.Versions() {
		for _, to := range k.Versions() {
			if !from.Served || !to.Served || from.Resource == to.Resource {
				continue
			}
			g := samples.New(from.Resource, from.Schema, seed)
			for range maxSamples {
				object := g.Whole()
				result, err := k.Convert(object, to.Resource.Version)
				if err != nil || result.IsIncomplete {
					continue // the report has it
				}
				if err := sample(from.Resource, to.Resource, object, result.Object); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
