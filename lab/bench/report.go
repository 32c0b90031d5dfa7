package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/yare-go/yare/lab/bench/internal/plot"
	"github.com/yare-go/yare/lab/bench/internal/stats"
)

// figureName describes one figure of a row.
type figureName struct {
	figure, title, unit string
	// factor turns the measured value (bytes, seconds) into the unit.
	factor float64
}

// section is a part of the report: the figures of one row.
type section struct {
	row, title string
	figures    []figureName
}

const (
	megabyte    = 1e-6
	millisecond = 1e3
	microsecond = 1e6
)

// sections returns the sections in their order.
func sections() []section {
	resident := figureName{"resident", "RSS after 10 s", "MB", megabyte}
	anonymous := figureName{"anonymous", "anonymous memory after 10 s", "MB", megabyte}
	peak := figureName{"peak", "highest RSS", "MB", megabyte}
	cpu := figureName{"cpu", "CPU until all are reconciled", "s", 1}
	cpu10 := figureName{"cpu10", "CPU until 10 s later", "s", 1}
	all := figureName{"all", "start until all are reconciled", "s", 1}
	syncing := []figureName{cpu, cpu10, all, resident, anonymous, peak}
	updates := []figureName{
		{"cpu", "CPU", "s", 1},
		{"each", "CPU for each update", "µs", microsecond},
		{"p50", "answer of the update until its reconcile, p50", "ms", millisecond},
		{"p99", "… p99", "ms", millisecond},
		{"sentP50", "sending of the update until its reconcile, p50", "ms", millisecond},
		{"sentP99", "… p99", "ms", millisecond},
		{"rate", "updates per second", "", 1},
		{"resident", "RSS at the end", "MB", megabyte},
		{"anonymous", "anonymous memory at the end", "MB", megabyte},
	}
	replayed := slices.Clone(updates)
	replayed = slices.DeleteFunc(replayed, func(n figureName) bool { return n.figure == "p50" || n.figure == "p99" })
	return []section{
		{"binary", "Binary", []figureName{{"size", "stripped", "MB", megabyte}, {"gzip", "gzip -9", "MB", megabyte}}},
		{"one", "One custom resource", []figureName{
			{"first", "start until the first reconcile", "ms", millisecond},
			{"cpu10", "CPU of the first 10 s", "ms", millisecond},
			resident, anonymous,
		}},
		{"shops", "%s custom resources of 1.7 KB", append(slices.Clone(syncing),
			figureName{"residentLate", "RSS after 2.5 minutes", "MB", megabyte},
			figureName{"anonymousLate", "anonymous memory after 2.5 minutes", "MB", megabyte},
			figureName{"idle", "CPU per idle minute", "ms", millisecond})},
		{"pods", "%s Pods", syncing},
		{"updates", "%s updates at a fixed rate", updates},
		{"grouped-updates", "%s updates at a fixed rate, in groups of 50", updates},
		{"replayed-updates", "%s updates at a fixed rate from the replay server", replayed},
		{"replayed-groups", "%s updates at a fixed rate from the replay server, in groups of 50", replayed},
		{"webapps", "%s WebApps: a Deployment and a status by server-side apply", []figureName{
			{"cpu", "CPU until all are ready", "s", 1},
			{"cpu10", "CPU until 10 s later", "s", 1},
			{"ready", "start until all are ready", "s", 1},
			{"requests", "requests until 10 s later", "", 1},
			{"writes", "writes among them", "", 1},
			resident, anonymous,
		}},
		{
			rowWebhook, "One call of a webhook, in %s calls, by yare alone",
			[]figureName{{"call", "CPU of the program, with TLS", "ms", millisecond}},
		},
		{
			rowConversion, "One conversion of an object, in %s calls, by yare alone",
			[]figureName{{"call", "CPU of the program, with TLS", "ms", millisecond}},
		},
		{rowCurve, "%s custom resources from the replay server", syncing},
	}
}

// report is the data of the template.
type report struct {
	Setup   *setup
	Commits []string
	// Flags are the flags of all runs, without repetitions.
	Flags    []string
	Rounds   int
	Programs []string
	Sections []reportSection
	// Plots has the file names of the plots.
	Plots []string
}

type reportSection struct {
	Title string
	// Commits are the commits of yare in the section. They are empty if all sections have the same commits.
	Commits []string
	Rounds  int
	Figures []reportFigure
}

// reportFigure is one figure, with a cell for each program.
type reportFigure struct {
	Title  string
	Values []string
	// Ratios has yare's value divided by the value of each other program.
	Ratios []string
}

//go:embed report.tmpl
var reportTemplate string

// writeReport writes RESULTS.md and the plots into dir.
func writeReport(dir string, all []result) error {
	r := &report{Rounds: math.MaxInt}
	for _, each := range all {
		if each.Setup != nil {
			r.Setup = each.Setup
			if f := each.Setup.Flags; f != "" && !slices.Contains(r.Flags, f) {
				r.Flags = append(r.Flags, f)
			}
		}
		if each.Row != "" && !slices.Contains(r.Commits, each.Commit) {
			r.Commits = append(r.Commits, each.Commit)
		}
	}
	if r.Setup == nil {
		return fmt.Errorf("no results are kept in %s", dir)
	}
	t := newTable(all)
	for _, p := range allPrograms() {
		if slices.ContainsFunc(all, func(each result) bool { return each.Program == p.name }) {
			r.Programs = append(r.Programs, p.name)
		}
	}
	for _, s := range sections() {
		for _, objects := range t.objects(s.row) {
			made := t.section(s, objects, r.Programs)
			if len(r.Commits) > 1 {
				made.Commits = commitsOf(all, s.row, objects)
			}
			if s.row != "binary" && s.row != rowCurve { // curves have fewer rounds
				r.Rounds = min(r.Rounds, made.Rounds)
			}
			r.Sections = append(r.Sections, made)
		}
	}
	var err error
	if r.Plots, err = t.writePlots(dir, r.Programs); err != nil {
		return err
	}
	parsed, err := template.New("RESULTS.md").Funcs(template.FuncMap{"join": strings.Join}).Parse(reportTemplate)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "RESULTS.md"), func(w io.Writer) error { return parsed.Execute(w, r) })
}

// writeFile writes a file by a function.
func writeFile(path string, write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// commitsOf returns the commits of yare with which a row was measured.
func commitsOf(all []result, row string, objects int) (commits []string) {
	for _, each := range all {
		if each.Row == row && each.Objects == objects && !slices.Contains(commits, each.Commit) {
			commits = append(commits, each.Commit)
		}
	}
	return commits
}

// table has the results by row, number of objects, program and round. If a round was kept
// twice, the last one counts.
type table map[cell]map[int]figures

type cell struct {
	row     string
	objects int
	program string
}

func newTable(all []result) table {
	t := make(table)
	for _, each := range all {
		if each.Row == "" {
			continue
		}
		key := cell{each.Row, each.Objects, each.Program}
		if t[key] == nil {
			t[key] = make(map[int]figures)
		}
		t[key][each.Round] = each.Figures
	}
	return t
}

// objects returns the numbers of objects that a row was measured with.
func (t table) objects(row string) []int {
	var all []int
	for key := range t {
		if key.row == row && !slices.Contains(all, key.objects) {
			all = append(all, key.objects)
		}
	}
	slices.Sort(all)
	return all
}

// values returns a figure of several programs, in the rounds that all of them have, in the unit
// of the name.
func (t table) values(row string, objects int, name figureName, programs ...string) [][]float64 {
	all := make([][]float64, len(programs))
	first := t[cell{row, objects, programs[0]}]
	for round := range maxRound(first) + 1 {
		values := make([]float64, len(programs))
		complete := true
		for i, p := range programs {
			value, ok := t[cell{row, objects, p}][round][name.figure]
			values[i], complete = value*name.factor, complete && ok
		}
		if complete {
			for i, v := range values {
				all[i] = append(all[i], v)
			}
		}
	}
	return all
}

func maxRound(rounds map[int]figures) int {
	last := 0
	for round := range rounds {
		last = max(last, round)
	}
	return last
}

// section makes one section of the report.
func (t table) section(s section, objects int, programs []string) reportSection {
	title := s.title
	if strings.Contains(title, "%s") {
		title = fmt.Sprintf(title, grouped(objects))
	}
	made := reportSection{Title: title, Rounds: math.MaxInt}
	for _, p := range programs {
		if n := len(t[cell{s.row, objects, p}]); n > 0 {
			made.Rounds = min(made.Rounds, n)
		}
	}
	for _, name := range s.figures {
		figure := reportFigure{Title: name.title}
		if name.unit != "" {
			figure.Title += ", " + name.unit
		}
		found := false
		for _, p := range programs {
			values := t.values(s.row, objects, name, p)[0]
			found = found || len(values) > 0
			figure.Values = append(figure.Values, spread(values))
			if p != yare {
				pair := t.values(s.row, objects, name, yare, p)
				figure.Ratios = append(figure.Ratios, ratio(pair[0], pair[1], s.row == "binary"))
			}
		}
		if found {
			made.Figures = append(made.Figures, figure)
		}
	}
	return made
}

// spread returns the median, the lowest and the highest value.
func spread(values []float64) string {
	switch {
	case len(values) == 0:
		return "–"
	case len(values) == 1:
		return plot.Number(values[0])
	default:
		return fmt.Sprintf("%s (%s–%s)", plot.Number(stats.Median(values)), plot.Number(slices.Min(values)),
			plot.Number(slices.Max(values)))
	}
}

// ratio returns the ratio of the medians with its interval. It is "below" or "above" if the
// interval is on one side of 1. An exact ratio has no interval.
func ratio(a, b []float64, exact bool) string {
	if len(a) == 0 || stats.Median(b) <= 0 || stats.Median(a) < 0 {
		return "–"
	}
	r, interval := stats.Ratio(a, b)
	switch text := fmt.Sprintf("%.2f", r); {
	case exact:
		return text
	case math.IsNaN(interval.Low):
		return text + " (too few rounds)"
	default:
		text += fmt.Sprintf(" (%.2f–%.2f)", interval.Low, interval.High)
		if interval.High < 1 {
			return text + " **below**"
		}
		if interval.Low > 1 {
			return text + " above"
		}
		return text
	}
}

// grouped returns a number with a comma before each group of three digits.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// writePlots writes the plots for which there are results, and returns their paths below dir.
func (t table) writePlots(dir string, programs []string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "plots"), 0o755); err != nil {
		return nil, err
	}
	var made []string
	draw := func(name string, series []plot.Series, write func(io.Writer) error) error {
		if len(series) == 0 {
			return nil
		}
		made = append(made, "plots/"+name)
		return writeFile(filepath.Join(dir, "plots", name), write)
	}
	x := plot.Axis{Title: "custom resources", Log: true}
	for _, c := range []struct {
		file, title string
		name        figureName
		y           plot.Axis
	}{
		{
			"memory.svg", "Resident memory, 10 s after the sync",
			figureName{"resident", "", "", megabyte}, plot.Axis{Title: "MB", Log: true},
		},
		{"cpu.svg", "CPU until all are reconciled", figureName{"cpu", "", "", 1}, plot.Axis{Title: "seconds", Log: true}},
	} {
		series := t.curve(c.name, programs)
		err := draw(c.file, series, func(w io.Writer) error { return plot.Lines(w, c.title, x, c.y, series) })
		if err != nil {
			return nil, err
		}
	}
	latency := t.bars("updates", []figureName{
		{"p50", "", "", millisecond}, {"p99", "", "", millisecond},
		{"sentP50", "", "", millisecond}, {"sentP99", "", "", millisecond},
	}, programs)
	err := draw("latency.svg", latency, func(w io.Writer) error {
		return plot.Bars(w, "Latency of updates", plot.Axis{Title: "ms"},
			[]string{"answer, p50", "answer, p99", "sending, p50", "sending, p99"}, latency)
	})
	if err != nil {
		return nil, err
	}
	size := t.bars("binary", []figureName{{"size", "", "", megabyte}, {"gzip", "", "", megabyte}}, programs)
	err = draw("binary.svg", size, func(w io.Writer) error {
		return plot.Bars(w, "Stripped binary", plot.Axis{Title: "MB"}, []string{"binary", "gzip -9"}, size)
	})
	return made, err
}

// curve returns the medians of a figure over the number of objects.
func (t table) curve(name figureName, programs []string) []plot.Series {
	var all []plot.Series
	for _, p := range programs {
		s := plot.Series{Name: p}
		for _, objects := range t.objects(rowCurve) {
			if values := t.values(rowCurve, objects, name, p)[0]; len(values) > 0 {
				s.X, s.Y = append(s.X, float64(objects)), append(s.Y, stats.Median(values))
			}
		}
		if len(s.X) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// bars returns the medians of several figures of a row. If a row was measured with several
// numbers of objects, the highest number counts. A negative value, such as a reconcile before the
// answer of its update, is drawn as 0.
func (t table) bars(row string, names []figureName, programs []string) []plot.Series {
	objects := t.objects(row)
	var all []plot.Series
	for _, p := range programs {
		s := plot.Series{Name: p}
		for _, name := range names {
			if len(objects) == 0 {
				break
			}
			values := t.values(row, objects[len(objects)-1], name, p)[0]
			if len(values) > 0 {
				s.Y = append(s.Y, max(0, stats.Median(values)))
			}
		}
		if len(s.Y) == len(names) {
			all = append(all, s)
		}
	}
	return all
}
