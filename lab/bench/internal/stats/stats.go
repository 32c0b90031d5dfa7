// Package stats has the statistics of the comparison.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Median returns the median of values, and NaN if there are none.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the q-quantile of values, for q from 0 to 1, and NaN if there are no values.
// Between two values it interpolates linearly.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	position := q * float64(len(sorted)-1)
	below := int(position)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (position-float64(below))*(sorted[below+1]-sorted[below])
}

// Interval is a 95 % bootstrap interval.
type Interval struct{ Low, High float64 }

// resamples is how often Ratio resamples the rounds.
const resamples = 10_000

// Ratio returns the median of a divided by the median of b, with the 95 % interval of a
// percentile bootstrap. The values a[i] and b[i] are values of one round. Each resample draws
// whole rounds with replacement, so that what disturbed a round disturbs both values. Equal
// values give equal results. With fewer than three rounds an interval has no meaning, and both of
// its ends are NaN. Ratio panics if a and b have different lengths.
func Ratio(a, b []float64) (ratio float64, interval Interval) {
	if len(a) != len(b) {
		panic("stats: the two programs were not measured in the same rounds")
	}
	ratio = Median(a) / Median(b)
	if len(a) < 3 {
		return ratio, Interval{math.NaN(), math.NaN()}
	}
	random := rand.New(rand.NewPCG(1, 2))
	ratios := make([]float64, resamples)
	drawnA, drawnB := make([]float64, len(a)), make([]float64, len(b))
	for i := range ratios {
		for k := range a {
			round := random.IntN(len(a))
			drawnA[k], drawnB[k] = a[round], b[round]
		}
		ratios[i] = Median(drawnA) / Median(drawnB)
	}
	return ratio, Interval{Quantile(ratios, 0.025), Quantile(ratios, 0.975)}
}
