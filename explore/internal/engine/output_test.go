package engine

import (
	"fmt"
	"testing"
)

func TestLastError(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"time=2026-05-01T12:00:00Z level=ERROR msg=failed":      true,
		"12:39:18 ERR webapp failed default/hello":              true,
		"E0501 12:00:00.000000       1 controller.go:1] failed": true,
		`{"level":"error","msg":"failed"}`:                      true,
		"2026-05-01T12:00:00Z\tERROR\tfailed":                   true,
		"12:39:18 INF no ERROR here":                            false,
		`level=INFO msg="the level is not level ERROR"`:         false,
	} {
		o := &output{}
		fmt.Fprintln(o, line)
		fmt.Fprintln(o, "12:39:19 INF later")
		if got := len(o.errorLines()) == 1 && o.errorLines()[0] == line; got != want {
			t.Errorf("%q is an error: %t, want %t", line, got, want)
		}
	}
}
