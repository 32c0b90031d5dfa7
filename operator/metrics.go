package operator

import (
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/feature/metrics"
)

// MetricsJoiner is a [Part] that joins the metrics of a program with those of another library. Module
// github.com/yare-go/yare/prometheus has such parts. The program counts its metrics also without an address.
type MetricsJoiner interface {
	// JoinMetrics is called once, before the parts start and before the metrics are served. own writes the metrics of the
	// program in the text format of Prometheus, and may be used concurrently. further adds metrics to the page /metrics, in
	// the same format, and may be called concurrently. further may be nil. An error of further is logged, and an error of
	// JoinMetrics ends the program.
	JoinMetrics(own io.WriterTo) (further func(w io.Writer) error, err error)
}

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
	r.Gauge("yare_leader", "1 if this replica leads, or the program has no leader election, else 0.", func() float64 {
		if election.isLeading() {
			return 1
		}
		return 0
	})
	r.Collect(metrics.KindCounter, "yare_writes_ended_by_lease_total",
		"Writes that had no answer within the time that the lease of the leader allowed them.", nil,
		func(emit metrics.Emit) { emit(election.timedOutWrites()) })
	registerProcessMetrics(r)
	return m
}

// registerProcessMetrics registers metrics of the process, by the names that the clients of Prometheus
// use.
func registerProcessMetrics(r *metrics.Registry) {
	started := float64(time.Now().UnixMilli()) / 1000
	r.Gauge("process_start_time_seconds", "When the process started, in seconds since 1970.",
		func() float64 { return started })
	r.Collect(metrics.KindCounter, "process_cpu_seconds_total", "CPU time, of user and system.", nil,
		func(emit metrics.Emit) { emit(cpuSeconds()) })
	for _, each := range []struct {
		name, help string
		value      func() (float64, error)
	}{
		{"process_resident_memory_bytes", "Memory of the process that is in RAM. Only on Linux.", metrics.ResidentBytes},
		{"process_open_fds", "Open file descriptors. Only on Linux.", openFiles},
		{"process_max_fds", "How many file descriptors may be open.", maxFiles},
	} {
		r.Collect(metrics.KindGauge, each.name, each.help, nil, func(emit metrics.Emit) {
			if v, err := each.value(); err == nil {
				emit(v)
			}
		})
	}
	r.Gauge("go_goroutines", "Goroutines.", func() float64 { return float64(runtime.NumGoroutine()) })
	for _, each := range []struct{ name, help, source string }{
		{"go_memstats_heap_alloc_bytes", "Live and dead objects on the heap.", "/memory/classes/heap/objects:bytes"},
		{"go_gc_heap_live_bytes", "Objects on the heap that the last garbage collection found live.", "/gc/heap/live:bytes"},
		{
			"go_memstats_sys_bytes", "Memory that the Go runtime has from the system, with what it has given back.",
			"/memory/classes/total:bytes",
		},
		{
			"go_memstats_heap_released_bytes", "Memory that the Go runtime has given back to the system.",
			"/memory/classes/heap/released:bytes",
		},
		{"go_gc_gomemlimit_bytes", "The memory limit of the garbage collector.", "/gc/gomemlimit:bytes"},
	} {
		r.Gauge(each.name, each.help, func() float64 { return metrics.RuntimeMetric(each.source) })
	}
	r.Collect(metrics.KindGauge, "yare_build_info", "1; which program this is, in its labels.",
		[]string{"version", "yare_version", "go_version"},
		func(emit metrics.Emit) { emit(1, programVersion(), yareVersion(), runtime.Version()) })
}

// registerCertificates registers the metric of the certificates. ends has a function for each use, and gets more of
// them before the first reader comes.
func registerCertificates(r *metrics.Registry, ends map[string]func() (time.Time, error)) {
	r.Collect(metrics.KindGauge, "yare_certificate_expiry_timestamp_seconds",
		"When a certificate of this replica expires, in seconds since 1970.",
		[]string{"server"}, func(emit metrics.Emit) {
			for _, use := range slices.Sorted(maps.Keys(ends)) {
				if at, err := ends[use](); err == nil { // a certificate that cannot be read again goes on, and is logged
					emit(float64(at.Unix()), use)
				}
			}
		})
}

// openFiles returns the number of open file descriptors, without the one that reads them.
func openFiles() (float64, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	return float64(len(entries) - 1), err
}

// maxFiles returns how many file descriptors may be open.
func maxFiles() (float64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return float64(limit.Cur), err
}

// cpuSeconds returns the CPU time of the process.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
