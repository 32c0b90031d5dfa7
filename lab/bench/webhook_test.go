package main

import "testing"

func TestBenchmarkFigure(t *testing.T) {
	t.Parallel()
	const output = "goos: linux\nBenchmarkWebhookCall-2 \t    5000\t    120345 ns/op\t     97512 cpu-ns/op\t   9000 B/op\nPASS\n"
	if got, err := benchmarkFigure(output, "cpu-ns/op"); err != nil || got != 97512 {
		t.Errorf("the figure is %v, %v", got, err)
	}
	if _, err := benchmarkFigure("PASS\n", "cpu-ns/op"); err == nil {
		t.Error("an output without a figure has one")
	}
}
