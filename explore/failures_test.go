package explore_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// failures is a test within a test. It keeps the failures.
type failures struct {
	testing.TB
	texts []string
}

// failuresOf returns the failures of a test.
func failuresOf(t *testing.T, test func(t testing.TB)) []string {
	t.Helper()
	f := &failures{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(f)
	}()
	<-ended
	return f.texts
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func (f *failures) Error(args ...any) { f.Errorf("%s", fmt.Sprint(args...)) }

func (f *failures) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

func (f *failures) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// requireFailures fails t unless the failures begin as wanted.
func requireFailures(t *testing.T, failures []string, want ...string) {
	t.Helper()
	if len(failures) != len(want) {
		t.Fatalf("the failures are %q, want %q", failures, want)
	}
	for i := range failures {
		if !strings.HasPrefix(failures[i], want[i]) {
			t.Errorf("the failure %q does not begin with %q", failures[i], want[i])
		}
	}
}
