// Package console shows a person what a program does, line by line: what happened, and what the
// program is doing now.
//
// On a terminal, one line at the bottom shows what the program is doing now, and is rewritten. Elsewhere a
// line now and then shows it, so that a log stays short.
package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// repeatPeriod is the shortest time between two lines about one task, where lines cannot be rewritten.
const repeatPeriod = 10 * time.Second

// Console writes lines that begin with a name. The name distinguishes them from the output of other programs.
// A nil Console writes nothing. Its methods may be called from several goroutines.
type Console struct {
	// out, prefix, rewritesLine, width and minTaskTime do not change after the first write.
	out io.Writer
	// prefix is the beginning of each line.
	prefix string
	// rewritesLine is true for a terminal: the bottom line is rewritten.
	rewritesLine bool
	// width returns the number of columns of the terminal.
	width func() int
	// minTaskTime is how long a task must have taken before it gets a line, where lines cannot be
	// rewritten.
	minTaskTime time.Duration

	mu    sync.Mutex
	tasks []*Task
	// isDrawn is true while the bottom line is on the screen.
	isDrawn bool
}

// New returns a console that writes to out, with colours and a live line if out is a terminal. NO_COLOR and
// TERM=dumb are respected.
func New(out io.Writer, name string) *Console {
	c := &Console{out: out, prefix: name + ": "}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return c
	}
	if os.Getenv("TERM") == "dumb" {
		return c
	}
	c.rewritesLine = true
	c.width = func() int {
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 {
			return 80
		}
		return width
	}
	if os.Getenv("NO_COLOR") == "" {
		c.prefix = "\x1b[36m" + name + ":\x1b[0m "
	}
	return c
}

// Printf writes one line.
func (c *Console) Printf(format string, args ...any) {
	c.write(fmt.Sprintf(format, args...), "")
}

// Block writes a text of several lines, indented, such as the messages of a compiler.
func (c *Console) Block(text string) {
	text = strings.TrimRight(text, "\n")
	if text != "" {
		c.write(text, "  ")
	}
}

// write writes the lines of text, each with the prefix and indent before it.
func (c *Console) write(text, indent string) {
	if c == nil {
		return
	}
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(c.prefix + indent + line + "\n")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eraseLocked()
	_, _ = io.WriteString(c.out, b.String())
	c.drawLocked()
}

// Task is work that takes long. Its text is shown until the task is done.
type Task struct {
	console *Console
	begun   time.Time
	// text and shown are guarded by the mutex of the console. shown is when the text was written last.
	text  string
	shown time.Time
}

// Task begins a task. It shows nothing before its first Set.
func (c *Console) Task() *Task {
	t := &Task{console: c, begun: time.Now()}
	if c == nil {
		return t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tasks = append(c.tasks, t)
	return t
}

// Set sets the text of the task.
func (t *Task) Set(format string, args ...any) {
	c := t.console
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.text = fmt.Sprintf(format, args...)
	if c.rewritesLine {
		c.eraseLocked()
		c.drawLocked()
		return
	}
	if now := time.Now(); now.Sub(t.shown) >= repeatPeriod && now.Sub(t.begun) >= c.minTaskTime {
		t.shown = now
		_, _ = io.WriteString(c.out, c.prefix+t.text+"\n")
	}
}

// Done ends the task.
func (t *Task) Done() {
	c := t.console
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.tasks {
		if c.tasks[i] == t {
			c.tasks = append(c.tasks[:i:i], c.tasks[i+1:]...)
			break
		}
	}
	c.eraseLocked()
	c.drawLocked()
}

// eraseLocked removes the bottom line from the screen.
func (c *Console) eraseLocked() {
	if c.isDrawn {
		_, _ = io.WriteString(c.out, "\r\x1b[K")
		c.isDrawn = false
	}
}

// drawLocked writes the texts of the tasks as the bottom line.
func (c *Console) drawLocked() {
	if !c.rewritesLine {
		return
	}
	var texts []string
	for _, t := range c.tasks {
		if t.text != "" {
			texts = append(texts, t.text)
		}
	}
	if len(texts) == 0 {
		return
	}
	// A line that wraps could not be erased. The prefix counts with its colours: a few columns
	// less do no harm.
	text := cut(strings.Join(texts, " | "), c.width()-len(c.prefix)-1)
	_, _ = io.WriteString(c.out, c.prefix+text)
	c.isDrawn = true
}

// cut returns text shortened to n characters.
func cut(text string, n int) string {
	runes := []rune(text)
	if n < 1 {
		return ""
	}
	if len(runes) <= n {
		return text
	}
	if n < 4 {
		return string(runes[:n])
	}
	return string(runes[:n-3]) + "..."
}

// Duration returns a duration as people write it: 3.4s, 47s, 3m07s.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	default:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
}
