package console

import (
	"strings"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := New(&out, "yare")
	c.Printf("one %d", 1)
	task := c.Task()
	task.Set("working")
	task.Set("still working") // Too soon for another line.
	task.Done()
	c.Block("a\nb\n")
	if want := "yare: one 1\nyare: working\nyare:   a\nyare:   b\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLiveLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := New(&out, "y")
	c.rewritesLine, c.width = true, func() int { return 20 }
	a, b := c.Task(), c.Task()
	a.Set("compiling")
	b.Set("building the operator")
	c.Printf("a line")
	a.Done()
	b.Done()
	const erase = "\r\x1b[K"
	want := "y: compiling" + erase + "y: compiling | b..." + erase + "y: a line\n" +
		"y: compiling | b..." + erase + "y: building the ..." + erase
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestNilSaysNothing(t *testing.T) {
	t.Parallel()
	var c *Console
	c.Printf("x")
	c.Block("x")
	task := c.Task()
	task.Set("x")
	task.Done()
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		3440 * time.Millisecond: "3.4s", 47 * time.Second: "47s", 187 * time.Second: "3m07s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %s, want %s", d, got, want)
		}
	}
}
