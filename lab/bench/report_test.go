package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	all := []result{{Setup: &setup{Processor: "P", Cores: 2, Libraries: map[string]string{}}}}
	for round := 1; round <= 10; round++ {
		noise := float64(round) / 1000
		for _, objects := range []int{1, 1000} {
			all = append(all,
				result{Row: rowCurve, Program: yare, Round: round, Objects: objects, Commit: "abc", Figures: figures{"cpu": 0.1 + noise, "resident": 20e6}},
				result{Row: rowCurve, Program: kubeRS, Round: round, Objects: objects, Commit: "abc", Figures: figures{"cpu": 0.2 + 2*noise, "resident": 10e6}})
		}
	}
	// kube-rs has no eleventh round. A ratio uses the rounds that both programs have.
	all = append(all, result{Row: rowCurve, Program: yare, Round: 11, Objects: 1000, Commit: "abc", Figures: figures{"cpu": 100, "resident": 1}})
	dir := t.TempDir()
	if err := writeReport(dir, all); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"## 1,000 custom resources from the replay server",
		"| CPU until all are reconciled, s | 0.50 (0.50–0.50) **below** |",
		"| RSS after 10 s, MB | 2.00 (2.00–2.00) above |",
		"| CPU until all are reconciled, s | 0.106 (0.101–0.110) | 0.211 (0.202–0.220) |",
		"![](plots/memory.svg)", "yare at abc;",
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the report has no %q:\n%s", part, text)
		}
	}
	if strings.Contains(string(text), "quick look") {
		t.Error("ten rounds are called a quick look")
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

func TestRatio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  []float64
		exact bool
		want  string
	}{
		{[]float64{1}, []float64{2}, true, "0.50"},
		{[]float64{1, 1}, []float64{2, 2}, false, "0.50 (too few rounds)"},
		{[]float64{1, 2, 3}, []float64{1, 2, 3}, false, "1.00 (1.00–1.00)"},
		{[]float64{-1, -1, -1}, []float64{1, 1, 1}, false, "–"},
		{nil, nil, false, "–"},
	} {
		if got := ratio(c.a, c.b, c.exact); got != c.want {
			t.Errorf("the ratio of %v and %v is %q, not %q", c.a, c.b, got, c.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
}
