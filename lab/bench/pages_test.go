package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figureOfCell is a number in a cell of a table: the median of a figure of a row. Where the columns of the table are
// yare, controller-runtime and kube-rs, the number in each of them is that of its program.
type figureOfCell struct {
	row     string
	objects int
	key     string
	factor  float64
	// programs replaces the programs of the columns. An empty name stands for no number.
	programs []string
}

// measuredCells has, for each line of the tables in README.md and docs/comparison.md, the numbers of a cell in their
// order. Binaries of yare are compared with .ci/sizes.txt elsewhere.
func measuredCells() map[string][]figureOfCell {
	const megabyte = 1e-6
	others := []string{"", controllerRuntime, kubeRS}
	sizes := []figureOfCell{
		{rowBinary, 1, "size", megabyte, others}, {rowBinary, 1, "gzip", megabyte, others},
	}
	memory := func(row string, objects int) []figureOfCell {
		return []figureOfCell{{row, objects, "peak", megabyte, nil}, {row, objects, "residentLate", megabyte, nil}}
	}
	return map[string][]figureOfCell{
		"stripped binary of the same operator (gzip -9)":                                 sizes,
		"highest memory with 10,000 custom resources":                                    memory("shops", 10_000)[:1],
		"highest memory (RSS) with one object":                                           memory("one", 1)[:1],
		"the same with 10,000 custom resources; after 2.5 minutes":                       memory("shops", 10_000),
		"the same with 5,000 Pods":                                                       memory("pods", 5000),
		"the same with 100,000 custom resources":                                         memory(rowCurve, 100_000),
		"start to first reconcile, one object":                                           {{"one", 1, "first", 1, nil}},
		"10,000 custom resources until all are reconciled: processor time; time":         {{"shops", 10_000, "cpu10", 1, nil}, {"shops", 10_000, "all", 1, nil}},
		"5,000 Pods, the same":                                                           {{"pods", 5000, "cpu10", 1, nil}, {"pods", 5000, "all", 1, nil}, {"pods", 5000, "cpu10", 1, []string{"yare-projected", "", ""}}},
		"100,000 custom resources, the same, from a server that is not the bottleneck":   {{rowCurve, 100_000, "cpu10", 1, nil}, {rowCurve, 100_000, "all", 1, nil}},
		"1,000 custom resources with a CPU limit of 100m: time until all are reconciled": {{"limited", 1000, "all", 1, nil}},
		"processor time for 1,000 updates that come alone; in groups of 50":              {{"updates", 1000, "cpu10", 1, nil}, {"grouped-updates", 1000, "cpu10", 1, nil}},
		"100 WebApps until all are ready: requests; processor time":                      {{"webapps", 100, "requests", 1, nil}, {"webapps", 100, "cpu10", 1, nil}},
	}
}

// notMeasured are the lines with numbers that are no figures of this comparison.
func notMeasured() []string {
	return []string{"heap per cached custom resource of 1.7 KB, all included", "heap per cached Pod of 4 to 5 KB"}
}

// The figures in the tables of README.md and docs/comparison.md are the medians in results.jsonl, rounded to the digits
// of the table.
func TestFiguresOfThePages(t *testing.T) {
	t.Parallel()
	kept, err := openResults("results.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	r, seen := report{results: kept.all}, map[string]bool{}
	for _, page := range []string{"../../README.md", "../../docs/comparison.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "| | yare | controller-runtime with kubebuilder | kube-rs |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		for line := range strings.Lines(table) {
			columns := strings.Split(strings.Trim(line, "| \n"), " | ")
			figures, isMeasured := measuredCells()[columns[0]]
			if !isMeasured {
				hasNumber := regexp.MustCompile(`\d (MB|KB|s)\b`).MatchString(strings.Join(columns[1:], " "))
				if hasNumber && !slices.Contains(notMeasured(), columns[0]) {
					t.Errorf("%s: the line %q has numbers, and no figures are known for it", page, columns[0])
				}
				continue
			}
			seen[columns[0]] = true
			for i, column := range columns[1:] {
				if err := checkCell(r, figures, i, column); err != nil {
					t.Errorf("%s: %s: the cell %q: %v", page, columns[0], column, err)
				}
			}
		}
	}
	for line := range measuredCells() {
		if !seen[line] {
			t.Errorf("no table has the line %q", line)
		}
	}
}

// checkCell compares the numbers in a cell of the i-th column with figures.
func checkCell(r report, figures []figureOfCell, i int, cell string) error {
	numbers := regexp.MustCompile(`\d[\d,]*(\.\d+)?`).FindAllString(cell, -1)
	for _, f := range figures {
		programs := f.programs
		if programs == nil {
			programs = []string{yare, controllerRuntime, kubeRS}
		}
		if programs[i] == "" {
			continue
		}
		if len(numbers) == 0 {
			return fmt.Errorf("it has no number for %s", f.key)
		}
		values := r.values(f.row, f.objects, figureName{f.key, "", f.factor}, programs[i])[0]
		shown := strings.ReplaceAll(numbers[0], ",", "")
		_, digits, _ := strings.Cut(shown, ".")
		if got := fmt.Sprintf("%.*f", len(digits), median(values)); got != shown {
			return fmt.Errorf("the median of %s is %s", f.key, got)
		}
		numbers = numbers[1:]
	}
	if len(numbers) > 0 && figures[0].programs == nil {
		return fmt.Errorf("nothing is known of %s", numbers[0])
	}
	return nil
}
