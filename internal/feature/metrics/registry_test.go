package metrics_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/yare-go/yare/internal/feature/metrics"
)

func written(t *testing.T, r *metrics.Registry) string {
	t.Helper()
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func check(t *testing.T, r *metrics.Registry, want string) {
	t.Helper()
	if got := written(t, r); got != strings.TrimLeft(want, "\n") {
		t.Errorf("got:\n%s\nwant:%s", got, want)
	}
}

func TestCounter(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	c := r.Counter("calls_total", "How many calls.", "by", "result")
	c.Add(1, "b", "good")
	c.Add(0, "a", "bad")
	c.Add(2, "b", "good")
	check(t, &r, `
# HELP calls_total How many calls.
# TYPE calls_total counter
calls_total{by="a",result="bad"} 0
calls_total{by="b",result="good"} 3
`)
}

func TestHistogramsAreCumulative(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	h := r.Histogram("took_seconds", "How long.", []float64{0.1, 1, 10}, "by")
	for _, v := range []float64{0.05, 0.1, 0.5, 5, 50} {
		h.Observe(v, "a")
	}
	check(t, &r, `
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{by="a",le="0.1"} 2
took_seconds_bucket{by="a",le="1"} 3
took_seconds_bucket{by="a",le="10"} 4
took_seconds_bucket{by="a",le="+Inf"} 5
took_seconds_sum{by="a"} 55.65
took_seconds_count{by="a"} 5
`)
}

func TestHistogramsCountEachSeriesAlone(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	h := r.Histogram("took_seconds", "How long.", []float64{1}, "by", "of")
	h.Observe(2, "b", "x")
	h.Observe(0, "a", "y")
	h.Observe(1.5, "b", "x")
	check(t, &r, `
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{by="a",of="y",le="1"} 1
took_seconds_bucket{by="a",of="y",le="+Inf"} 1
took_seconds_sum{by="a",of="y"} 0
took_seconds_count{by="a",of="y"} 1
took_seconds_bucket{by="b",of="x",le="1"} 0
took_seconds_bucket{by="b",of="x",le="+Inf"} 2
took_seconds_sum{by="b",of="x"} 3.5
took_seconds_count{by="b",of="x"} 2
`)
}

func TestCollectedMetricsAreAskedForWhenTheyAreRead(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	now := 1.0
	r.Collect(metrics.KindGauge, "depth", "How many.", nil, func(emit metrics.Emit) { emit(now) })
	r.Collect(metrics.KindGauge, "bytes", "How many.", []string{"of"}, func(emit metrics.Emit) {
		emit(1e6, "pods")
		emit(2e6, "pods") // two series of one name are an error to Prometheus
		emit(math.Inf(1), "nodes")
	})
	now = 2
	check(t, &r, `
# HELP depth How many.
# TYPE depth gauge
depth 2
# HELP bytes How many.
# TYPE bytes gauge
bytes{of="nodes"} +Inf
bytes{of="pods"} 3e+06
`)
}

func TestLabelsAndHelpAreEscaped(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	r.Counter("a_total", "One line\nand a \\.", "l").Add(1, "say \"hi\"\\\n")
	check(t, &r, `
# HELP a_total One line\nand a \\.
# TYPE a_total counter
a_total{l="say \"hi\"\\\n"} 1
`)
}

func TestMistakesPanic(t *testing.T) {
	t.Parallel()
	for name, mistake := range map[string]func(*metrics.Registry){
		"a name twice":       func(r *metrics.Registry) { r.Counter("a_total", ""); r.Counter("a_total", "") },
		"a label is missing": func(r *metrics.Registry) { r.Counter("a_total", "", "l").Add(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("nothing was said")
				}
			}()
			mistake(&metrics.Registry{})
		})
	}
}

func TestMetricsWithoutLabels(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	r.Counter("calls_total", "How many calls.").Add(1)
	r.Histogram("took_seconds", "How long.", []float64{2}).Observe(1)
	r.Collect(metrics.KindGauge, "depth", "How many.", nil, func(emit metrics.Emit) { emit(1) })
	check(t, &r, `
# HELP calls_total How many calls.
# TYPE calls_total counter
calls_total 1
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_bucket{le="2"} 1
took_seconds_bucket{le="+Inf"} 1
took_seconds_sum 1
took_seconds_count 1
# HELP depth How many.
# TYPE depth gauge
depth 1
`)
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	var r metrics.Registry
	c := r.Counter("a_total", "", "l")
	h := r.Histogram("h", "", []float64{1}, "l")
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 1000 {
				c.Add(1, "x")
				h.Observe(1, "x")
			}
		})
	}
	for range 10 {
		written(t, &r)
	}
	running.Wait()
	if text := written(t, &r); !strings.Contains(text, `a_total{l="x"} 4000`) || !strings.Contains(text, `h_count{l="x"} 4000`) {
		t.Error(text)
	}
}
