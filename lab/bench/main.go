// Command bench compares yare with controller-runtime and kube-rs. It builds one operator with
// each toolkit, lets them do the same work in turns, and measures the processes from outside.
//
//	go -C lab/bench run .                        # ten rounds of all rows and three of the curves, about an hour
//	go -C lab/bench run . -rounds 1 -rows shops  # a quick look at one row
//	go -C lab/bench run . -rows replayed-updates -updates 2000 -programs yare,yare-base -base ../../../parent
//	                                             # the processor time of an update, compared with another checkout
//	go -C lab/bench run . -report                # write RESULTS.md anew from the rounds that are kept
//
// Each round of each row is kept in results.jsonl. A run that was cut off goes on where it was:
// a round that is kept is not measured again. RESULTS.md and the plots are made of all rounds
// that are kept.
//
// It needs Linux and Go. Without cargo it leaves kube-rs out. The machine should be idle
// otherwise.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// options are the flags.
type options struct {
	rounds, lateRounds, curveRounds int
	rows, programs                  []string
	shops, pods                     int
	updates, rate, webapps          int
	curve                           []int
	late                            time.Duration
	source, out                     string
	// base is the folder of another checkout of yare, whose program takes part as yare-base. It may be empty.
	base   string
	report bool
}

func main() {
	log.SetFlags(log.Ltime)
	process.EndWithGo()
	o, err := parseFlags()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parseFlags() (options, error) {
	var o options
	var rows, programs, curve string
	flag.IntVar(&o.rounds, "rounds", 10, "how often each program does the work of a row")
	flag.IntVar(&o.lateRounds, "late-rounds", 3, "in how many rounds the row shops is also measured after -late")
	flag.IntVar(&o.curveRounds, "curve-rounds", 3, "how often each program does the work of the row curve")
	flag.StringVar(&rows, "rows", "", "the rows to measure, separated by commas (default: all)")
	flag.StringVar(&programs, "programs", "", "the programs to measure, separated by commas (default: all)")
	flag.IntVar(&o.shops, "shops", 10_000, "the number of custom resources")
	flag.IntVar(&o.updates, "updates", 10_000, "the number of custom resources that are updated once each")
	flag.IntVar(&o.pods, "pods", 5000, "the number of Pods")
	flag.IntVar(&o.rate, "rate", 500, "the number of updates per second")
	flag.IntVar(&o.webapps, "webapps", 200, "the number of WebApps")
	flag.StringVar(&curve, "curve", "1,1000,10000,50000,100000", "the numbers of objects of the curves")
	flag.DurationVar(&o.late, "late", 150*time.Second, "when memory is measured a second time, after the sync")
	flag.StringVar(&o.out, "out", "",
		"the folder of results.jsonl, RESULTS.md and the plots (default: the folder of this program)")
	flag.StringVar(&o.base, "base", "", "the folder of another checkout of yare, whose program takes part as yare-base")
	flag.BoolVar(&o.report, "report", false, "measure nothing, and write the report")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("there are no arguments but flags: %s", flag.Arg(0))
	}
	for _, text := range strings.Split(curve, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-curve %s: %q is not a number of objects", curve, text)
		}
		o.curve = append(o.curve, n)
	}
	if o.rounds < 1 || o.curveRounds < 1 || o.shops < 1 || o.updates < 1 || o.pods < 1 || o.rate < 1 || o.webapps < 1 {
		return o, errors.New("numbers of rounds, objects and updates are at least 1")
	}
	var err error
	if o.rows, err = choose("row", rows, rowNames(o)); err != nil {
		return o, err
	}
	var names []string
	for _, p := range allPrograms() {
		names = append(names, p.name)
	}
	if o.programs, err = choose("program", programs, names); err != nil {
		return o, err
	}
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/yare-go/yare/lab/bench").Output()
	if err != nil {
		return o, errors.New(
			"the folder of the comparison was not found: run it by go -C lab/bench run . (with flags behind the point)")
	}
	o.source = strings.TrimSpace(string(out))
	if o.out == "" {
		o.out = o.source
	}
	return o, nil
}

// choose returns the names in list, or all names if list is empty.
func choose(what, list string, all []string) ([]string, error) {
	if list == "" {
		return all, nil
	}
	chosen := strings.Split(list, ",")
	for _, name := range chosen {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no %s %q; there are: %s", what, name, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}

func run(ctx context.Context, o options) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	kept, err := openResults(filepath.Join(o.out, "results.jsonl"))
	if err != nil {
		return err
	}
	defer kept.Close()
	if !o.report {
		dir, err := os.MkdirTemp("", "yare-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := measure(ctx, o, dir, kept); err != nil {
			return err
		}
	}
	return writeReport(o.out, kept.all)
}

// measure builds the programs and measures the rounds that are not kept yet.
func measure(ctx context.Context, o options, dir string, kept *results) error {
	setup := newSetup(ctx, o)
	programs, err := build(ctx, o, dir)
	if err != nil {
		return err
	}
	if err := kept.add(result{Setup: setup}); err != nil {
		return err
	}
	for _, p := range programs {
		if !p.hasRow("binary") {
			continue // it is the binary of another variant
		}
		figures := figures{"size": p.size, "gzip": p.gzip}
		err := kept.add(result{Row: "binary", Program: p.name, Round: 1, Objects: 1, Figures: figures, Commit: setup.Commit})
		if err != nil {
			return err
		}
	}
	b := &bench{options: o, dir: dir, programs: programs, results: kept, commit: setup.Commit}
	defer b.close()
	for _, r := range allRows(o) {
		if slices.Contains(o.rows, r.name) {
			if err := b.measureRow(ctx, r); err != nil {
				return fmt.Errorf("row %s: %w", r.name, err)
			}
		}
	}
	return nil
}
