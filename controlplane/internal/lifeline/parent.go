package lifeline

import (
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Parent is the parent's end of the lifeline of one child.
type Parent struct {
	ready     *os.File // read end
	hold      *os.File // write end, written by nobody
	inherited []*os.File
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
	return &Parent{ready: ready, hold: hold, inherited: []*os.File{childParent, childReady}}, nil
}

// Started closes this process's copies of the child's ends: only then does a read from
// the child end when the child does.
func (p *Parent) Started() {
	for _, f := range p.inherited {
		f.Close()
	}
	p.inherited = nil
}

// WaitReady blocks until the child is ready or gone, and reports whether it is ready.
func (p *Parent) WaitReady() bool {
	said, _ := io.ReadAll(p.ready)
	return len(said) > 0
}

// Close closes both pipes. A child that still runs then ends itself.
func (p *Parent) Close() {
	p.Started()
	p.ready.Close()
	p.hold.Close()
}
