package lifeline

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Parent is the parent's end of the lifeline of one child.
type Parent struct {
	// ready is the read end of the pipe on which the child reports that it is ready.
	ready *os.File
	// hold is the write end of the other pipe. Nobody writes to it, and it stays open until this process ends.
	hold *os.File
	// childEnds are the ends of both pipes that the child inherits.
	childEnds []*os.File
}

// Attach gives cmd, which must not have been started yet, a lifeline. After the attempt to
// start cmd the caller must call Started or Close.
func Attach(cmd *exec.Cmd) (*Parent, error) {
	childParent, hold, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	ready, childReady, err := os.Pipe()
	if err != nil {
		childParent.Close()
		hold.Close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	first := 3 + len(cmd.ExtraFiles) // exec.Cmd numbers them after stdin, stdout, stderr
	cmd.ExtraFiles = append(cmd.ExtraFiles, childParent, childReady)
	cmd.Env = append(cmd.Environ(),
		fmt.Sprintf("%s=%d", parentVariable, first),
		fmt.Sprintf("%s=%d", readyVariable, first+1))
	return &Parent{ready: ready, hold: hold, childEnds: []*os.File{childParent, childReady}}, nil
}

// Started closes this process's copies of the child's ends. Otherwise WaitReady would not return when the child ends.
func (p *Parent) Started() {
	for _, f := range p.childEnds {
		f.Close()
	}
	p.childEnds = nil
}

// WaitReady blocks until the child is ready or gone, and reports whether it is ready.
func (p *Parent) WaitReady() bool {
	report, _ := io.ReadAll(p.ready) // an error means that the child has reported nothing
	return len(report) > 0
}

// Close closes both pipes. A child that still runs then ends itself.
func (p *Parent) Close() {
	p.Started()
	p.ready.Close()
	p.hold.Close()
}
