package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// figureName is the title of a figure. factor turns the measured value (seconds, bytes) into the unit of the title.
type figureName struct {
	key, title string
	factor     float64
}

// figureNames returns all figures in the order of the report.
func figureNames() []figureName {
	const megabyte, millisecond = 1e-6, 1e3
	return []figureName{
		{"size", "stripped, MB", megabyte},
		{"gzip", "gzip -9, MB", megabyte},
		{"cpu10", "CPU until 10 s after the work, ms", millisecond},
		{"cpu", "CPU until the work is done, ms", millisecond},
		{"first", "start until the first reconcile, ms", millisecond},
		{"all", "start until the work is done, ms", millisecond},
		{"p50", "answer of the update until its reconcile, p50, ms", millisecond},
		{"p99", "… p99, ms", millisecond},
		{"sentP50", "sending of the update until its reconcile, p50, ms", millisecond},
		{"sentP99", "… p99, ms", millisecond},
		{"rate", "updates per second", 1},
		{"groupPeak", "highest memory of the control group, MB", megabyte},
		{"peak", "highest RSS, MB", megabyte},
		{"residentLate", "RSS after 2.5 minutes, MB", megabyte},
		{"anonymousLate", "anonymous memory after 2.5 minutes, MB", megabyte},
		{"idle", "CPU per idle minute, ms", millisecond},
		{"reconciles", "reconciles", 1},
		{"requests", "requests", 1},
		{"received", "bytes received, MB", megabyte},
		{"call", "CPU of a call, with TLS, ms", millisecond},
	}
}

// report makes the pages and the plots of all results.
type report struct {
	results []result
	// programs are those with results, in the order of the tables.
	programs []string
}

// writeReport writes RESULTS.md and the plots into dir, and PROGRESS.md if there are results of yare-base.
func writeReport(dir string, results []result) error {
	r := report{results: results}
	var setups strings.Builder
	for _, each := range results {
		if each.Setup != nil {
			setups.Reset() // the last one counts, because a run can be resumed
			for _, name := range slices.Sorted(maps.Keys(each.Setup)) {
				fmt.Fprintf(&setups, "- %s: %v\n", name, each.Setup[name])
			}
		}
	}
	if setups.Len() == 0 {
		return fmt.Errorf("no results are kept in %s", dir)
	}
	for _, p := range allPrograms() {
		if slices.ContainsFunc(results, func(each result) bool { return each.Program == p.name }) {
			r.programs = append(r.programs, p.name)
		}
	}
	var text, progress strings.Builder
	fmt.Fprintf(&text, "# Results of the comparison\n\n`go -C lab/bench run .` wrote this file. results.jsonl has every single "+
		"value, and [the page of the comparison](README.md)\nexplains the rows and the figures.\n\n%s\n", setups.String())
	fmt.Fprint(&text, "A cell has the median of all rounds, with the lowest and the highest value in parentheses. The second table "+
		"of each\nsection has the value of yare divided by that of each other program, with the 95 % interval of a bootstrap over "+
		"the rounds.\n")
	fmt.Fprintf(&progress, "# Before and after\n\n`go -C lab/bench run . -base FOLDER` wrote this file. All values are those of yare, in "+
		"one run: *parent* is the library in\nFOLDER. [RESULTS.md](RESULTS.md) has the setup, and explains cells and ratios.\n\n%s"+
		"| row | parent | now | ratio |\n| --- | --- | --- | --- |\n", setups.String()+"\n")
	for file, name := range map[string]figureName{"memory": {"groupPeak", "MB", 1e-6}, "cpu": {"cpu10", "seconds of CPU", 1}} {
		if err := r.plot(filepath.Join(dir, "plots", file+".svg"), name); err != nil {
			return err
		}
		fmt.Fprintf(&text, "\n![%s over the number of objects](plots/%s.svg)\n", name.title, file)
	}
	var written []string
	for _, each := range allRows() {
		if slices.Contains(written, each.name) { // the curve is a row for each number of objects
			continue
		}
		written = append(written, each.name)
		for _, objects := range r.objects(each.name) {
			r.writeSection(&text, &progress, each, objects)
		}
	}
	err := os.WriteFile(filepath.Join(dir, "RESULTS.md"), []byte(text.String()), 0o644)
	if slices.Contains(r.programs, yareBase) {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "PROGRESS.md"), []byte(progress.String()), 0o644))
	}
	return err
}

// objects returns the numbers of objects that a row was measured with.
func (r report) objects(row string) (all []int) {
	for _, each := range r.results {
		if each.Row == row {
			all = append(all, each.Objects)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// writeSection writes the section of a row, and the lines of the row in the table of progress.
func (r report) writeSection(text, progress io.Writer, of row, objects int) {
	title := strings.ReplaceAll(of.title, "%d", fmt.Sprint(objects))
	fmt.Fprintf(text, "\n## %s\n\n| |%s\n| --- |%s\n", title, cells(r.programs), strings.Repeat(" --- |", len(r.programs)))
	ratios := fmt.Sprintf("\n| yare divided by |%s\n| --- |%s\n", cells(r.programs), strings.Repeat(" --- |", len(r.programs)))
	for _, name := range figureNames() {
		var values, divided []string
		for _, p := range r.programs {
			values = append(values, spread(r.values(of.name, objects, name, p)[0]))
			pair := r.values(of.name, objects, name, yare, p)
			divided = append(divided, ratioText(pair[0], pair[1]))
		}
		if strings.Trim(strings.Join(values, ""), "–") == "" {
			continue
		}
		fmt.Fprintf(text, "| %s |%s\n", name.title, cells(values))
		ratios += fmt.Sprintf("| %s |%s\n", name.title, cells(divided))
		if base := slices.Index(r.programs, yareBase); base >= 0 && values[base] != "–" {
			now := values[slices.Index(r.programs, yare)]
			fmt.Fprintf(progress, "| %s: %s |%s\n", title, name.title, cells([]string{values[base], now, divided[base]}))
		}
	}
	fmt.Fprint(text, ratios)
}

func cells(texts []string) string { return " " + strings.Join(texts, " | ") + " |" }

// values returns a figure of several programs, in the rounds that all of them have, in the unit of the name. If a round
// was kept twice, the last one counts.
func (r report) values(row string, objects int, name figureName, programs ...string) [][]float64 {
	all := make([][]float64, len(programs))
	for i := range all {
		rounds := make([]map[int]float64, len(programs))
		for k, p := range programs {
			rounds[k] = make(map[int]float64)
			for _, each := range r.results {
				if value, ok := each.Figures[name.key]; ok && each.isOf(row, objects) && each.Program == p {
					rounds[k][each.Round] = value * name.factor
				}
			}
		}
		for _, round := range slices.Sorted(maps.Keys(rounds[i])) {
			if !slices.ContainsFunc(rounds, func(of map[int]float64) bool { _, ok := of[round]; return !ok }) {
				all[i] = append(all[i], rounds[i][round])
			}
		}
	}
	return all
}

// spread returns the median, the lowest and the highest value.
func spread(values []float64) string {
	switch len(values) {
	case 0:
		return "–"
	case 1:
		return number(values[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(median(values)), number(slices.Min(values)), number(slices.Max(values)))
}

// ratioText returns the ratio of the medians, with its interval if there are three rounds.
func ratioText(a, b []float64) string {
	if len(a) == 0 || median(b) <= 0 || median(a) < 0 {
		return "–"
	}
	r, low, high := ratio(a, b)
	if len(a) < 3 {
		return fmt.Sprintf("%.2f", r)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", r, low, high)
}

// number returns a number with three digits, and with as many digits as it needs before the point.
func number(v float64) string {
	decimals := 0
	if v != math.Trunc(v) {
		decimals = min(3, max(0, 2-int(math.Floor(math.Log10(math.Abs(v))))))
	}
	return fmt.Sprintf("%.*f", decimals, v)
}

// plot draws the medians of a figure over the number of objects, one line for each program.
func (r report) plot(path string, name figureName) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "From the replay server", "custom resources", name.title
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	var lines []any
	for _, program := range r.programs {
		var points plotter.XYs
		for _, objects := range r.objects(rowCurve) {
			if values := r.values(rowCurve, objects, name, program)[0]; len(values) > 0 {
				points = append(points, plotter.XY{X: float64(objects), Y: median(values)})
			}
		}
		if len(points) > 0 {
			lines = append(lines, program, points)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := errors.Join(plotutil.AddLinePoints(p, lines...), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
		return err
	}
	return p.Save(12*vg.Centimeter, 10*vg.Centimeter, path)
}
