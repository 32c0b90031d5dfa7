package main

import (
	"math/rand/v2"

	"github.com/aclements/go-moremath/stats"
)

// quantile returns the q-quantile of values, for q from 0 to 1, and NaN if there are no values.
func quantile(values []float64, q float64) float64 { return stats.Sample{Xs: values}.Quantile(q) }

// median returns the median of values, and NaN if there are no values.
func median(values []float64) float64 { return quantile(values, 0.5) }

// ratio returns the median of a divided by the median of b, with the 95 % interval of a percentile bootstrap. The values
// a[i] and b[i] are values of one round. Each resample draws whole rounds with replacement, so that what disturbed a
// round disturbs both values. Equal values give equal results.
func ratio(a, b []float64) (ratio, low, high float64) {
	random := rand.New(rand.NewPCG(1, 2))
	ratios, drawnA, drawnB := make([]float64, 10_000), make([]float64, len(a)), make([]float64, len(b))
	for i := range ratios {
		for k := range a {
			round := random.IntN(len(a))
			drawnA[k], drawnB[k] = a[round], b[round]
		}
		ratios[i] = median(drawnA) / median(drawnB)
	}
	return median(a) / median(b), quantile(ratios, 0.025), quantile(ratios, 0.975)
}
