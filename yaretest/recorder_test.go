package yaretest_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a test inside of a test: its failures are recorded.
type recorder struct {
	testing.TB
	name string

	mu       sync.Mutex
	failures []string
	skipped  string
	output   bytes.Buffer
	cleanups []func()
	isOver   bool
}

// record runs f as a test, with its cleanups, and returns what became of it.
func record(t *testing.T, name string, f func(t testing.TB)) *recorder {
	r := &recorder{TB: t, name: t.Name() + "/" + name}
	inGoroutine := func(f func()) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f()
		}()
		<-ended
	}
	inGoroutine(func() { f(r) })
	for len(r.cleanups) > 0 {
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		inGoroutine(last)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOver = true
	return r
}

func (r *recorder) Name() string      { return r.name }
func (r *recorder) Output() io.Writer { return r }
func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isOver {
		r.TB.Errorf("written after the test: %s", text)
	}
	return r.output.Write(text)
}

func (r *recorder) Logf(format string, args ...any) { _, _ = fmt.Fprintf(r, format+"\n", args...) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) FailNow() { runtime.Goexit() }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.FailNow()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	r.skipped = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) { r.Skipf("%s", fmt.Sprint(args...)) }

// text returns what was written to the test.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// requireFailure fails t unless the test has failed once, with an error that has all parts.
func (r *recorder) requireFailure(t *testing.T, parts ...string) {
	t.Helper()
	if len(r.failures) != 1 {
		t.Errorf("it failed with %q, want one failure", r.failures)
		return
	}
	for _, part := range parts {
		if !strings.Contains(r.failures[0], part) {
			t.Errorf("it failed with %q, want %q in it", r.failures[0], part)
		}
	}
}
