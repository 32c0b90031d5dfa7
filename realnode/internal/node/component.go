//go:build linux

package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/yare-go/yare/realnode/internal/control"
	"github.com/yare-go/yare/realnode/internal/layout"
)

const (
	// restartDelay is the wait before an ended component is started again.
	restartDelay = time.Second
	// minRunTime is how long a component must have run for its end to be the first of a row.
	minRunTime = 20 * time.Second
	// giveUpAfter is how many ends in a row are too many.
	giveUpAfter = 5
)

// component is one program of a node, which is started again whenever it ends.
type component struct {
	name   string
	layout layout.Layout
	output *control.Writer
	path   string
	args   []string
}

// run runs the component until ctx ends. It returns an error when the component keeps ending.
func (c component) run(ctx context.Context) error {
	c.output.Write(control.Event{Event: control.Starting, Component: c.name})
	for failures := 0; ; {
		started := time.Now()
		err := c.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) >= minRunTime {
			failures = 0
		}
		failures++
		text := LogTail(c.layout.LogFile(c.name))
		if failures >= giveUpAfter {
			return fmt.Errorf("%s ended %d times in a row: %w; the end of its log:\n%s", c.name, failures, err, text)
		}
		c.output.Write(control.Event{Event: control.Exited, Component: c.name, Error: err.Error(), Log: text})
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartDelay):
		}
	}
}

// runOnce starts the program, and returns how it ended. It never returns nil.
func (c component) runOnce(ctx context.Context) error {
	log, err := openLog(c.layout, c.name)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return err
	}
	return fmt.Errorf("%s exited with status 0", c.name)
}

// openLog opens the log of a component.
func openLog(l layout.Layout, component string) (*os.File, error) {
	log, err := os.OpenFile(l.LogFile(component), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", component, err)
	}
	return log, nil
}

// LogTail returns the last lines of a log. They are short enough for one atomic write into a pipe: two
// processes write events to the same pipe.
func LogTail(name string) string {
	const (
		most  = 2 << 10
		lines = 15
	)
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := max(0, size-most)
	text, err := io.ReadAll(io.NewSectionReader(file, from, size-from))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
