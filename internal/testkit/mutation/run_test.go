package mutation

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
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	tryMissing = flag.Bool("try", false, "try the mutations that have no result, each for seconds or minutes")
	withServer = flag.Bool("server", true, "with -try, run tests on a real API server if no other test fails")
)

// resultsFile has the results that are kept.
const resultsFile = "results.jsonl"

// TestMutationsAreCaught fails for each mutation that survived, does not compile, or does not fit the code.
func TestMutationsAreCaught(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	promises, err := readPromises(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	results, err := readResults()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range allMutations() {
		t.Run(strconv.Itoa(m.number), func(t *testing.T) {
			r, ok := results[m.hash()]
			if !ok || r.Verdict == survived && *withServer && !r.WithServer {
				if !*tryMissing {
					t.Skipf("%s has no result: go test ./internal/testkit/mutation -run TestMutationsAreCaught/%d -timeout 0 -try", m, m.number)
				}
				began := time.Now()
				v, by, err := try(t.Context(), root, m, promises[m.promise])
				if err != nil {
					t.Fatal(err)
				}
				r = result{
					Number: m.number, Promise: m.promise, Verdict: v, By: by, WithServer: *withServer,
					Seconds: time.Since(began).Round(time.Second / 10).Seconds(), Hash: m.hash(),
				}
				if err := addResult(r); err != nil {
					t.Fatal(err)
				}
			}
			if r.Verdict != caught {
				t.Errorf("%s: %s", m, r.Verdict)
			}
			t.Logf("%s: %s %s", m.function, r.Verdict, r.By)
		})
	}
}

// addResult adds a line to the results.
func addResult(r result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(resultsFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
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

// try applies a mutation in an overlay, and runs the tests of its promise until one fails. Tests that take
// more than five minutes count as failed.
func try(ctx context.Context, root string, m mutation, groups []testGroup) (verdict, string, error) {
	changed, err := m.apply(os.DirFS(root))
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp("", "yare-mutation-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	for _, g := range inOrder(groups, m.folder, *withServer) {
		overlay, err := writeOverlay(root, dir, changed, g.unneeded)
		if err != nil {
			return "", "", err
		}
		out, err := runGo(ctx, root, overlay, "test", "-p=1", "-vet=off", "-ldflags=-s -w", "-timeout=5m", "-run=^("+strings.Join(g.tests, "|")+")$", "./"+g.dir)
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
func writeOverlay(root, dir string, changed changedFile, unneeded []string) (string, error) {
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

// runGo runs a go command with an overlay in the root of the module. The overlay is in GOFLAGS, so that programs which a test
// builds have it too.
func runGo(ctx context.Context, root, overlay string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
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
func readResults() (map[string]result, error) {
	results := make(map[string]result)
	text, err := os.ReadFile(resultsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", resultsFile, err)
		}
		results[r.Hash] = r
	}
	return results, nil
}
