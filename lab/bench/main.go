// Command bench compares yare with controller-runtime and kube-rs. It builds one operator with
// each toolkit, lets them do the same work in turns, and measures the processes from outside.
//
//	go -C lab/bench run .                                    # ten rounds of all rows and five of the curve: hours
//	go -C lab/bench run . -rounds 1 -rows shops -objects 99  # a quick look at one row, with 99 objects
//	go -C lab/bench run . -base ../../../parent              # the library of another checkout takes part as yare-base
//	go -C lab/bench run . -report                            # write the report from the rounds that are kept
//
// Each round of each row is kept in results.jsonl. A run that was cut off goes on where it was: a round that is kept is
// not measured again. RESULTS.md, PROGRESS.md and the plots are made of all rounds that are kept. README.md has the rows
// and how they are measured.
//
// It needs Linux and Go. Without cargo it leaves kube-rs out. The machine should be idle otherwise.
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
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// options are the flags.
type options struct {
	rounds, rate, objects int
	rows, programs        *regexp.Regexp
	late                  time.Duration
	source, out           string
	// base is the folder of another checkout of yare, whose library takes part as yare-base. It may be empty.
	base string
}

func main() {
	log.SetFlags(log.Ltime)
	process.EndWithGo()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options
	rows := flag.String("rows", "", "the rows to measure: a regular expression of whole names (default: all)")
	programs := flag.String("programs", "", "the programs to measure: a regular expression of whole names (default: all)")
	flag.IntVar(&o.rounds, "rounds", 10, "how often each program does the work of a row; of the curve, half as often")
	flag.IntVar(&o.objects, "objects", 0, "the number of objects (default: that of each row)")
	flag.IntVar(&o.rate, "rate", 500, "the number of updates per second")
	flag.DurationVar(&o.late, "late", 150*time.Second, "when memory is measured at rest, in three rounds of some rows; 0 for never")
	flag.StringVar(&o.out, "out", "", "the folder of the results and the report (default: the folder of this program)")
	flag.StringVar(&o.base, "base", "", "the folder of another checkout of yare, whose library takes part as yare-base")
	isReport := flag.Bool("report", false, "measure nothing, and write the report")
	flag.Parse()
	if flag.NArg() > 0 || o.rounds < 1 || o.rate < 1 || o.objects < 0 {
		return errors.New("there are no arguments but flags, and rounds and rates are at least 1")
	}
	source, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/yare-go/yare/lab/bench").Output()
	if err != nil {
		return errors.New(
			"the folder of the comparison was not found: run it by go -C lab/bench run . (with flags behind the point)")
	}
	if o.source = strings.TrimSpace(string(source)); o.out == "" {
		o.out = o.source
	}
	var patternErr error
	o.rows, err = wholeName(*rows)
	o.programs, patternErr = wholeName(*programs)
	if err := errors.Join(err, patternErr, os.MkdirAll(o.out, 0o755)); err != nil {
		return err
	}
	kept, err := openResults(filepath.Join(o.out, "results.jsonl"))
	if err == nil && !*isReport {
		err = measure(ctx, o, kept)
	}
	if err != nil {
		return err
	}
	return writeReport(o.out, kept.all)
}

// wholeName returns a pattern of whole names. The empty expression is that of all names.
func wholeName(expression string) (*regexp.Regexp, error) {
	if expression == "" {
		expression = ".*"
	}
	return regexp.Compile("^(" + expression + ")$")
}

// measure builds the programs and measures the rounds that are not kept yet.
func measure(ctx context.Context, o options, kept *results) error {
	dir, err := os.MkdirTemp("", "yare-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, results: kept, setup: newSetup(ctx, o)}
	defer b.close()
	if b.programs, err = build(ctx, o, dir); err != nil {
		return err
	}
	if err := kept.add(result{Setup: b.setup}); err != nil {
		return err
	}
	if !hasControlGroups() {
		log.Print("no control groups can be made: their memory and the row limited are left out")
	}
	for _, r := range allRows() {
		if o.rows.MatchString(r.name) {
			if err := b.measureRow(ctx, r); err != nil {
				return fmt.Errorf("row %s: %w", r.name, err)
			}
		}
	}
	return nil
}
