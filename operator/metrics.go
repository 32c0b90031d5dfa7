package operator

import (
	"github.com/yare-go/yare/operator/internal/metrics"
)

// programMetrics are the metrics of one program, which docs/metrics.md lists. No label has the name of an
// object.
type programMetrics struct {
	registry   *metrics.Registry
	reconciles *reconcileMetrics
	requests   *requestMetrics
}

// newProgramMetrics returns the metrics of a program. elected is the field Elected of [controller.Runtime].
func newProgramMetrics(elected <-chan struct{}) *programMetrics {
	r := new(metrics.Registry)
	m := &programMetrics{registry: r, reconciles: newReconcileMetrics(r), requests: newRequestMetrics(r)}
	registerGauge(r, "yare_leader", "1 if this replica leads, or the program has no leader election, else 0.",
		func() float64 { return leads(elected) })
	registerProcessMetrics(r)
	return m
}

// leads returns 1 if elected is nil or closed, else 0.
func leads(elected <-chan struct{}) float64 {
	if elected == nil {
		return 1
	}
	select {
	case <-elected:
		return 1
	default:
		return 0
	}
}
