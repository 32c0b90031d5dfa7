package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// results are the results of a soak.
type results struct {
	Time    time.Time `json:"time"`
	Commit  string    `json:"commit"`
	Go      string    `json:"go"`
	Cores   int       `json:"cores"`
	Minutes float64   `json:"minutes"`
	Objects int       `json:"objects"`
	// Rate is the number of changes per second that were asked for. Changes and Faults count the changes and
	// the faults that happened.
	Rate    float64        `json:"rate"`
	Seed    uint64         `json:"seed"`
	Changes map[string]int `json:"changes"`
	Faults  map[string]int `json:"faults"`
	// Wrong lists the problems at the end. It is empty if every object was right.
	Wrong             string   `json:"wrong,omitempty"`
	SecondsUntilRight float64  `json:"secondsUntilRight"`
	Trends            []trend  `json:"trends"`
	Samples           []sample `json:"samples"`
}

// trend compares the median of the last third of the samples with the median of the second third.
type trend struct {
	Of string `json:"of"`
	// Second and Last are the medians. Bound is the largest Last that counts as flat.
	Second float64 `json:"second"`
	Last   float64 `json:"last"`
	Bound  float64 `json:"bound"`
	Flat   bool    `json:"flat"`
}

func (t trend) String() string {
	return fmt.Sprintf("%s: median %.0f of the second third, %.0f of the last third, bound %.0f", t.Of, t.Second, t.Last, t.Bound)
}

func newResults(ctx context.Context) *results {
	// Values that cannot be found out are empty.
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	return &results{
		Time: time.Now().UTC().Truncate(time.Second), Commit: strings.TrimSpace(string(commit)),
		Go: runtime.Version(), Cores: runtime.NumCPU(),
		Minutes: duration.Minutes(), Objects: *objects, Rate: *rate, Seed: *seed,
	}
}

// The last third may be larger than the second third by this share, and a number by this number.
const (
	growthShare  = 0.05
	growthNumber = 2
)

// judge sets the trends.
func (r *results) judge() {
	if len(r.Samples) < 6 {
		r.Wrong = strings.TrimSpace(r.Wrong + "\nthere are too few samples to judge")
		return
	}
	second := r.Samples[len(r.Samples)/3 : 2*len(r.Samples)/3]
	last := r.Samples[2*len(r.Samples)/3:]
	for _, each := range []struct {
		of     string
		value  func(sample) float64
		number float64
	}{
		{"resident memory", resident, 0},
		{"live heap", heap, 0},
		{"goroutines", goroutines, growthNumber},
		{"file descriptors", files, growthNumber},
		{"sockets", sockets, growthNumber},
	} {
		t := trend{Of: each.of, Second: median(valuesOf(second, each.value)), Last: median(valuesOf(last, each.value))}
		t.Bound = t.Second + max(growthShare*t.Second, each.number)
		t.Flat = t.Last <= t.Bound
		r.Trends = append(r.Trends, t)
	}
}

func resident(s sample) float64   { return s.Resident }
func heap(s sample) float64       { return s.Heap }
func goroutines(s sample) float64 { return s.Goroutines }
func files(s sample) float64      { return s.Files }
func sockets(s sample) float64    { return s.Sockets }

func valuesOf(samples []sample, value func(sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, each := range samples {
		values[i] = value(each)
	}
	return values
}

// err returns an error if the operator has not passed.
func (r *results) err() error {
	var errs []error
	if r.Wrong != "" {
		errs = append(errs, errors.New(r.Wrong))
	}
	for _, t := range r.Trends {
		if !t.Flat {
			errs = append(errs, fmt.Errorf("%s: the median of the last third of the time is %.0f, more than %.0f", t.Of, t.Last, t.Bound))
		}
	}
	return errors.Join(errs...)
}

// write writes the results and the plots into a folder.
func (r *results) write(folder string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// One sample a line: a difference of two results is legible.
	text = append([]byte(strings.ReplaceAll(string(text), `},{`, "},\n{")), '\n')
	if err := os.WriteFile(filepath.Join(folder, "results.json"), text, 0o644); err != nil {
		return err
	}
	const megabyte = 1e-6
	return errors.Join(
		r.plot(folder, "memory", "Memory of the operator", "MB",
			line{"resident", resident, megabyte}, line{"live objects on the Go heap", heap, megabyte}),
		r.plot(folder, "goroutines", "Goroutines of the operator", "goroutines", line{"goroutines", goroutines, 1}),
		r.plot(folder, "connections", "Open files of the operator", "number",
			line{"file descriptors", files, 1}, line{"sockets among them", sockets, 1}),
	)
}

// line is one line of a plot.
type line struct {
	name   string
	value  func(sample) float64
	factor float64
}

// plot draws the medians of each minute.
func (r *results) plot(folder, name, title, unit string, lines ...line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text, p.Y.Min = title, "minutes", unit, 0
	var drawn []any
	for _, each := range lines {
		var points plotter.XYs
		for _, minute := range r.minutes() {
			points = append(points, plotter.XY{
				X: minute[len(minute)-1].Second / 60, Y: each.factor * median(valuesOf(minute, each.value)),
			})
		}
		drawn = append(drawn, each.name, points)
	}
	return errors.Join(plotutil.AddLines(p, drawn...), p.Save(12*vg.Centimeter, 10*vg.Centimeter, filepath.Join(folder, name+".svg")))
}

// median returns the median of values.
func median(values []float64) float64 { return stats.Sample{Xs: values}.Quantile(0.5) }

// minutes returns the samples of each minute that has any.
func (r *results) minutes() [][]sample {
	var all [][]sample
	minute := -1
	for _, s := range r.Samples {
		if now := int(s.Second / 60); now != minute {
			minute = now
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

func TestGrowthIsNotFlat(t *testing.T) {
	t.Parallel()
	r := &results{}
	for i := range 90 {
		r.Samples = append(r.Samples, sample{Resident: 100 + float64(i), Heap: 100, Goroutines: 20 + float64(i/60), Sockets: 5})
	}
	r.judge()
	for _, each := range r.Trends {
		if want := each.Of != "resident memory"; each.Flat != want {
			t.Errorf("%s: flat is %t, not %t: %+v", each.Of, each.Flat, want, each)
		}
	}
	if r.err() == nil {
		t.Error("memory that grows is no error")
	}
}
