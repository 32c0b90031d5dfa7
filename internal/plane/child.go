package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/filelock"
	"github.com/yare-go/yare/internal/plane/process"
)

// child is a process of a program of yare that ends at the end of its input. The program writes one JSON
// object a line.
type child struct {
	// title is the name of the program in messages: "the control plane".
	title   string
	binary  string
	process *process.Process
	in      io.WriteCloser
	stderr  *process.Tail
	// startTask shows the progress of the start.
	startTask *console.Task
	// inUse has a shared lock, which keeps the binary in the cache.
	inUse   *os.File
	endOnce sync.Once
}

// startChild starts a binary. suffix is the end of the text about the progress, and may be empty. receive gets each
// line of the standard output of the process. log gets its standard error, and may be nil.
func startChild(
	title, suffix, binary string, args []string, log io.Writer, out *console.Console, receive func(c *child, line []byte),
) (*child, error) {
	cmd := exec.Command(binary, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c := &child{title: title, binary: binary, in: in, stderr: &process.Tail{Next: log}, startTask: out.Task()}
	c.startTask.Set("starting %s%s", title, suffix)
	cmd.Stdout = &lineWriter{receive: func(line []byte) { receive(c, line) }}
	cmd.Stderr = c.stderr
	if c.inUse, err = os.Open(binary); err != nil {
		c.startTask.Done()
		return nil, err
	}
	// An error does not matter: a file that cannot be locked is not in the cache.
	_ = filelock.Try(c.inUse, filelock.Shared)
	// The child gets no signal when this process dies. It sees the end of its input, on every system, and
	// once. Linux may send the signal several times, and a second signal asks for a hasty end.
	if c.process, err = process.Start(cmd, 0); err != nil {
		c.startTask.Done()
		return nil, errors.Join(err, c.inUse.Close())
	}
	return c, nil
}

// decode decodes a line of the child into v. It reports false for a line that is not JSON, and adds the line
// to the log of the child.
func (c *child) decode(line []byte, v any) bool {
	if err := json.Unmarshal(line, v); err != nil {
		_, _ = fmt.Fprintf(c.stderr, "%s\n", line)
		return false
	}
	return true
}

// waitFor returns the next event of a channel. It returns an error if the child or ctx ends before.
func waitFor[E any](ctx context.Context, c *child, events <-chan E) (event E, err error) {
	select {
	case event = <-events:
		return event, nil
	case <-c.process.Done():
	case <-ctx.Done():
		return event, fmt.Errorf("wait for %s to become ready: %w", c.title, context.Cause(ctx))
	}
	select {
	case event = <-events: // the child reported the cause before it ended
		return event, nil
	default:
		return event, fmt.Errorf("start %s %s: %w", c.title, c.binary, c.endError("it ended before it was ready"))
	}
}

// endError returns an error that begins with text and has the status and the last output of the child, which has ended.
func (c *child) endError(text string) error {
	status := "exit status 0"
	if err := c.process.Err(); err != nil {
		status = err.Error()
	}
	text += " (" + status + ")"
	if output := c.stderr.String(); output != "" {
		text += ":\n" + output
	}
	return errors.New(text)
}

// end ends the child and waits until the child has ended. It may be called more than once.
func (c *child) end() {
	c.endOnce.Do(func() {
		c.startTask.Done()
		// The child ends at the end of its input. A child that no longer reads gets a signal.
		_ = c.in.Close()
		timer := time.NewTimer(20 * time.Second)
		defer timer.Stop()
		select {
		case <-c.process.Done():
		case <-timer.C:
			c.process.Stop(syscall.SIGTERM, false, 10*time.Second)
		}
		_ = c.inUse.Close()
	})
	<-c.process.Done()
}
