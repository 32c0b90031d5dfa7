// Command mutation checks that the tests of a promise fail when the promise is broken. It makes 100
// small changes of yare's code, one at a time, and runs for each the tests that docs/guarantees.md
// names for the promise.
//
//	go run ./internal/testkit/mutation                    # all, with tests on a real API server where no other test fails
//	go run ./internal/testkit/mutation -server=false      # without a real API server
//	go run ./internal/testkit/mutation -from 27 -to 33    # some
//	go run ./internal/testkit/mutation -report            # the sums of the results that are kept
//
// The files of the work tree do not change: the go command sees a changed file by its flag -overlay.
// Each result is a line of results.jsonl. A run that was cut off goes on where it was: a mutation with
// a result is not tried again, unless the shape of its code has changed or it survived with fewer tests.
// The shape is the code without its names. Whoever changes only a name such that it is another mutation
// deletes the line of its result.
//
// The exit status is 1 if a mutation survives, does not compile, or does not fit the code any more.
//
// # Patterns
//
// A mutation names the folder of a package, a declaration in it, a pattern and a replacement:
//
//	{29, 7, "cache/internal/overlay", "Entry.isOld", `_e._isMarkedOld || _X`, `_X`}
//
// The declaration is a function, "Type.Method", or a constant or variable. It may stand in any file of the
// package. Exactly one place of the declaration fits the pattern. The test TestMutationsFitTheCode reports
// the mutations that do not fit.
//
// A pattern is Go code with wildcards. The names of wildcards begin with an underscore. A wildcard with a
// small letter stands for any identifier: a variable, a receiver or a field. A wildcard with a capital letter
// stands for any expression. A wildcard that occurs twice stands for the same code in both places. The
// replacement may use the wildcards of the pattern. In this function, _e stands for e, _isMarkedOld for
// isMarkedOld, and _X for the comparison:
//
//	func (e Entry) isOld() bool { return e.isMarkedOld || time.Since(e.recorded) > MaxAge }
//
// So the mutation makes of it:
//
//	func (e Entry) isOld() bool { return time.Since(e.recorded) > MaxAge }
//
// A pattern is one of:
//
//   - One or several expressions with commas between them. Several expressions fit a part of a list, for example
//     of the arguments of a call. A call that is a statement is deleted by an empty replacement.
//   - One or several statements with semicolons between them.
//   - The beginning of an if statement, "if X {", or of a case, "case X:". The rest stays as it is.
//
// Names of variables, receivers and fields are wildcards in a pattern. Names of functions, types and constants
// are not, because they say what the place means: who renames a function changes the word in the rows.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	from, to int
	server   bool
	report   bool
	timeout  time.Duration
	out      string
}

// verdict is the outcome of a mutation.
type verdict string

const (
	caught         verdict = "caught"
	survived       verdict = "survived"
	doesNotCompile verdict = "does not compile"
)

// result is a line of the results.
type result struct {
	Number  int     `json:"number"`
	Promise int     `json:"promise"`
	Verdict verdict `json:"verdict"`
	// By is the test that failed.
	By string `json:"by,omitempty"`
	// WithServer is true if the tests on a real API server were among those that may have run.
	WithServer bool    `json:"withServer"`
	Seconds    float64 `json:"seconds"`
	// Hash is the hash of the mutation's shape.
	Hash string `json:"hash"`
}

func main() {
	var o options
	flag.IntVar(&o.from, "from", 1, "the number of the first mutation")
	flag.IntVar(&o.to, "to", len(allMutations()), "the number of the last mutation")
	flag.BoolVar(&o.server, "server", true, "run tests on a real API server if no other test fails")
	flag.BoolVar(&o.report, "report", false, "run nothing, and print the sums of the results")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "the time for the tests of one package, after which the mutation counts as caught")
	flag.StringVar(&o.out, "out", "internal/testkit/mutation/results.jsonl", "the file of the results")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if flag.NArg() > 0 || o.from < 1 || o.to > len(allMutations()) {
		return fmt.Errorf("the flags -from and -to are between 1 and %d, and there are no arguments", len(allMutations()))
	}
	promises, err := readPromises(os.DirFS("."))
	if err != nil {
		return fmt.Errorf("read the promises (run the command in the root of the module): %w", err)
	}
	results, err := readResults(o.out)
	if err != nil {
		return err
	}
	if !o.report {
		if err := tryAll(ctx, o, promises, results); err != nil {
			return err
		}
	}
	return report(results)
}

// tryAll tries the mutations of the range that have no result yet, and adds their results.
func tryAll(ctx context.Context, o options, promises map[int][]testGroup, results map[string]result) error {
	file, err := os.OpenFile(o.out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	var misfits error
	for _, m := range allMutations() {
		_, err := m.apply(os.DirFS("."))
		misfits = errors.Join(misfits, err)
	}
	if misfits != nil {
		return misfits
	}
	for _, m := range spread(allMutations()) {
		if m.number < o.from || m.number > o.to {
			continue
		}
		if r, ok := results[m.hash()]; ok && (r.Verdict != survived || r.WithServer || !o.server) {
			continue
		}
		began := time.Now()
		v, by, err := try(ctx, o, m, promises[m.promise])
		if err != nil {
			return err
		}
		r := result{
			Number: m.number, Promise: m.promise, Verdict: v, By: by, WithServer: o.server,
			Seconds: time.Since(began).Round(time.Second / 10).Seconds(), Hash: m.hash(),
		}
		results[r.Hash] = r
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := file.Write(append(line, '\n')); err != nil {
			return err
		}
		fmt.Printf("%3d  promise %-2d  %-50s  %s %s (%.0f s)\n", m.number, m.promise, m.folder+" "+m.function, r.Verdict, r.By, r.Seconds)
	}
	return file.Close()
}

// spread returns the mutations in the order in which they are tried: the first of each promise, then the
// second of each. So a run that is cut off has tried something of each promise.
func spread(all []mutation) []mutation {
	var spread []mutation
	for turn := 0; len(spread) < len(all); turn++ {
		earlier := make(map[int]int) // by promise
		for _, m := range all {
			if earlier[m.promise] == turn {
				spread = append(spread, m)
			}
			earlier[m.promise]++
		}
	}
	return spread
}

// try applies a mutation in an overlay, and runs the tests of its promise until one fails.
func try(ctx context.Context, o options, m mutation, groups []testGroup) (verdict, string, error) {
	changed, err := m.apply(os.DirFS("."))
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp("", "yare-mutation-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	for _, g := range inOrder(groups, m.folder, o.server) {
		overlay, err := writeOverlay(dir, changed, g.unneeded)
		if err != nil {
			return "", "", err
		}
		out, err := runGo(ctx, overlay, "test", "-p=1", "-vet=off", "-ldflags=-s -w", "-timeout="+o.timeout.String(), "-run=^("+strings.Join(g.tests, "|")+")$", "./"+g.dir)
		switch {
		case ctx.Err() != nil:
			return "", "", ctx.Err()
		case err != nil && bytes.Contains(out, []byte("[build failed]")):
			return doesNotCompile, "", nil
		case err != nil:
			return caught, g.dir + " " + failedTest(out), nil
		}
	}
	return survived, "", nil
}

// writeOverlay writes the changed file and an overlay into dir, and returns the path of the overlay. The overlay
// has the changed file, and has not the files that are not needed.
func writeOverlay(dir string, changed changedFile, unneeded []string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	replacement, overlay := filepath.Join(dir, filepath.Base(changed.name)), filepath.Join(dir, "overlay.json")
	replace := map[string]string{filepath.Join(root, changed.name): replacement}
	for _, name := range unneeded {
		replace[filepath.Join(root, name)] = ""
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(replacement, changed.code, 0o600), os.WriteFile(overlay, text, 0o600))
}

// runGo runs a go command with an overlay. The overlay is in GOFLAGS, so that programs which a test
// builds have it too.
func runGo(ctx context.Context, overlay string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-overlay="+overlay)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // tests remove what they have started
	cmd.WaitDelay = 30 * time.Second
	return cmd.CombinedOutput()
}

// failedTest returns the name of the first test that failed, or how the tests ended.
func failedTest(output []byte) string {
	if match := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindSubmatch(output); match != nil {
		return string(match[1])
	}
	for _, end := range []string{"test timed out", "panic", "fatal error"} {
		if bytes.Contains(output, []byte(end)) {
			return "(" + end + ")"
		}
	}
	return "(failed)"
}

// readResults returns the kept results by the hashes of their mutations. A later result replaces an
// earlier result.
func readResults(path string) (map[string]result, error) {
	results := make(map[string]result)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		results[r.Hash] = r
	}
	return results, nil
}

// report prints the sums of the present mutations. It returns an error if not all of them were caught.
func report(results map[string]result) error {
	sums := make(map[verdict]int)
	missing := 0
	for _, m := range allMutations() {
		r, ok := results[m.hash()]
		if !ok {
			missing++
			continue
		}
		if sums[r.Verdict]++; r.Verdict != caught {
			fmt.Printf("%s: %s\n", m, r.Verdict)
		}
	}
	fmt.Printf("%d caught, %d survived, %d do not compile, %d not tried\n",
		sums[caught], sums[survived], sums[doesNotCompile], missing)
	if open := sums[survived] + sums[doesNotCompile]; open > 0 {
		return fmt.Errorf("%d mutations were not caught", open)
	}
	return nil
}
