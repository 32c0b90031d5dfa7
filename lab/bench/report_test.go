package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	all := []result{{Setup: setup{"processor": "P", "commit": "abc"}}}
	for round := 1; round <= 10; round++ {
		noise := float64(round) / 1000
		for _, objects := range []int{1, 1000} {
			all = append(all,
				result{Row: rowCurve, Program: yare, Round: round, Objects: objects, Commit: "abc", Figures: figures{"cpu10": 0.1 + noise, "groupPeak": 20e6}},
				result{Row: rowCurve, Program: yareBase, Round: round, Objects: objects, Commit: "abc", Figures: figures{"cpu10": 0.2 + 2*noise}},
				result{Row: rowCurve, Program: kubeRS, Round: round, Objects: objects, Commit: "abc", Figures: figures{"cpu10": 0.2 + 2*noise, "groupPeak": 10e6}})
		}
	}
	all = append(all, result{Row: rowBinary, Program: yare, Round: 1, Objects: 1, Figures: figures{"size": 1e6}})
	// kube-rs has no eleventh round. A ratio uses the rounds that both programs have.
	all = append(all, result{Row: rowCurve, Program: yare, Round: 11, Objects: 1000, Commit: "abc", Figures: figures{"cpu10": 100, "groupPeak": 1}})
	dir := t.TempDir()
	if err := writeReport(dir, all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"## 1000 custom resources from the replay server",
		"| | yare | yare-base | kube-rs |", "## Binary\n\n", "| stripped, MB | 1.00 | – | – |",
		"| CPU until 10 s after the work, ms | 1.00 (1.00–1.00) | 0.50 (0.50–0.50) | 0.50 (0.50–0.50) |",
		"| CPU until 10 s after the work, ms | 106 (101–110) | 211 (202–220) | 211 (202–220) |",
		"| highest memory of the control group, MB | 1.00 (1.00–1.00) | – | 2.00 (2.00–2.00) |",
		"](plots/memory.svg)", "- processor: P",
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the report has no %q:\n%s", part, text)
		}
	}
	progress, err := os.ReadFile(filepath.Join(dir, "PROGRESS.md"))
	if err != nil {
		t.Fatal(err)
	}
	const line = "| 1 custom resources from the replay server: CPU until 10 s after the work, ms | 211 (202–220) | 106 (101–110) | 0.50 (0.50–0.50) |\n"
	if text := string(progress); !strings.Contains(text, line) || strings.Contains(text, "highest memory") {
		t.Errorf("the table of progress has no %q, or more than yare-base has:\n%s", line, text)
	}
	for _, name := range []string{"memory.svg", "cpu.svg"} {
		if _, err := os.Stat(filepath.Join(dir, "plots", name)); err != nil {
			t.Error(err)
		}
	}
	if err := writeReport(dir, nil); err == nil {
		t.Error("a report of nothing is no error")
	}
}

func TestRatioText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b []float64
		want string
	}{
		{[]float64{1}, []float64{2}, "0.50"},
		{[]float64{1, 2, 3}, []float64{1, 2, 3}, "1.00 (1.00–1.00)"},
		{[]float64{2, 4, 6, 8}, []float64{1, 1, 1, 1}, "5.00 (2.00–8.00)"},
		{[]float64{-1, -1, -1}, []float64{1, 1, 1}, "–"},
		{nil, nil, "–"},
	} {
		if got := ratioText(c.a, c.b); got != c.want {
			t.Errorf("the ratio of %v and %v is %q, not %q", c.a, c.b, got, c.want)
		}
	}
}

// A quantile of an even number of values lies between two of them.
func TestQuantile(t *testing.T) {
	t.Parallel()
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median is %g", got)
	}
	if got := quantile([]float64{1, 2, 3}, 1); got != 3 {
		t.Errorf("the highest value is %g", got)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 13: "13", 1234.5: "1234", 99.96: "100.0", 12.34: "12.3", 1.234: "1.23", 0.01234: "0.012", -12.3: "-12.3"} {
		if got := number(v); got != want {
			t.Errorf("%g is written %s, not %s", v, got, want)
		}
	}
}
