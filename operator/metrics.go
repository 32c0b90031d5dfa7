package operator

import (
	"runtime"
	runtimemetrics "runtime/metrics"
	"syscall"
	"time"

	"github.com/yare-go/yare/operator/internal/metrics"
)

// programMetrics are the metrics of one program, which docs/metrics.md lists. No label has the name of an
// object.
type programMetrics struct {
	registry   *metrics.Registry
	reconciles *reconcileMetrics
	requests   *requestMetrics
}

// newProgramMetrics returns the metrics of a program. election may be nil.
func newProgramMetrics(election *leaderElection) *programMetrics {
	r := new(metrics.Registry)
	m := &programMetrics{registry: r, reconciles: newReconcileMetrics(r), requests: newRequestMetrics(r)}
	registerGauge(r, "yare_leader", "1 if this replica leads, or the program has no leader election, else 0.", func() float64 {
		if election.leads() {
			return 1
		}
		return 0
	})
	r.Collect(metrics.KindCounter, "yare_writes_ended_by_lease_total",
		"Writes that had no answer within the time that the lease of the leader allowed them.", nil,
		func(emit metrics.Emit) { emit(election.endedWrites()) })
	registerProcessMetrics(r)
	return m
}

// registerProcessMetrics registers metrics of the process, by the names that the clients of Prometheus
// use.
func registerProcessMetrics(r *metrics.Registry) {
	started := float64(time.Now().UnixMilli()) / 1000
	registerGauge(r, "process_start_time_seconds", "When the process started, in seconds since 1970.", func() float64 { return started })
	r.Collect(metrics.KindCounter, "process_cpu_seconds_total", "CPU time, of user and system.", nil,
		func(emit metrics.Emit) { emit(cpuSeconds()) })
	registerGauge(r, "go_goroutines", "Goroutines.", func() float64 { return float64(runtime.NumGoroutine()) })
	for _, each := range []struct{ name, help, of string }{
		{"go_memstats_heap_alloc_bytes", "Live and dead objects on the heap.", "/memory/classes/heap/objects:bytes"},
		{"go_gc_heap_live_bytes", "Objects on the heap that the last garbage collection found live.", "/gc/heap/live:bytes"},
		{"go_memstats_sys_bytes", "Memory that the Go runtime has from the system.", "/memory/classes/total:bytes"},
		{"go_gc_gomemlimit_bytes", "The memory limit of the garbage collector.", "/gc/gomemlimit:bytes"},
	} {
		registerGauge(r, each.name, each.help, func() float64 { return runtimeMetric(each.of) })
	}
	r.Collect(metrics.KindGauge, "yare_build_info", "1; which program this is, in its labels.",
		[]string{"version", "go_version"}, func(emit metrics.Emit) { emit(1, programVersion(), runtime.Version()) })
}

// registerGauge registers a gauge without labels.
func registerGauge(r *metrics.Registry, name, help string, value func() float64) {
	r.Collect(metrics.KindGauge, name, help, nil, func(emit metrics.Emit) { emit(value()) })
}

// runtimeMetric returns a metric of the Go runtime, or 0 if this Go does not have it.
func runtimeMetric(name string) float64 {
	sample := []runtimemetrics.Sample{{Name: name}}
	runtimemetrics.Read(sample)
	if sample[0].Value.Kind() != runtimemetrics.KindUint64 {
		return 0
	}
	return float64(sample[0].Value.Uint64())
}

// cpuSeconds returns the CPU time of the process.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
