package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// calls measures the calls of a webhook: a benchmark of package operator, which is a process of its own.
type calls struct{ benchmark string }

func (c calls) measureRound(
	ctx context.Context, b *bench, r row, programs []*program, _ int,
) (map[string]figures, error) {
	b.close() // nothing else shall use the processor
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^"+c.benchmark+"$",
		"-benchtime", strconv.Itoa(r.objects)+"x", "./operator")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w\n%s", c.benchmark, err, out)
	}
	nanoseconds, err := benchmarkFigure(string(out), "cpu-ns/op")
	if err != nil {
		return nil, err
	}
	all := make(map[string]figures)
	for _, p := range programs {
		all[p.name] = figures{"call": nanoseconds / 1e9}
	}
	return all, nil
}

// benchmarkFigure returns the figure with a unit in the output of go test, such as 95000 in "95000 cpu-ns/op".
func benchmarkFigure(output, unit string) (float64, error) {
	fields := strings.Fields(output)
	for i, each := range fields {
		if each == unit && i > 0 {
			return strconv.ParseFloat(fields[i-1], 64)
		}
	}
	return 0, fmt.Errorf("the output of the benchmark has no figure in %s:\n%s", unit, output)
}
