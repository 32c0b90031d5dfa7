package metrics

import (
	"errors"
	"os"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"
)

// RuntimeMetric returns a metric of the Go runtime, or 0 if this Go does not have it.
func RuntimeMetric(name string) float64 {
	sample := []runtimemetrics.Sample{{Name: name}}
	runtimemetrics.Read(sample)
	if sample[0].Value.Kind() != runtimemetrics.KindUint64 {
		return 0
	}
	return float64(sample[0].Value.Uint64())
}

// ResidentBytes returns the memory of the process that is in RAM (proc_pid_statm(5)).
func ResidentBytes() (float64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text)) // the whole size, the resident size, …, in pages
	if len(fields) < 2 {
		return 0, errors.New("/proc/self/statm has no resident size")
	}
	resident, err := strconv.ParseFloat(fields[1], 64)
	return resident * float64(os.Getpagesize()), err
}
