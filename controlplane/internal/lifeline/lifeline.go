// Package lifeline ties a child process to its parent with two pipes. The first one ends
// when the parent is gone. On the second one the child reports that it is ready.
//
// The kernel closes the parent's end of a pipe however the parent dies, on every
// operating system, so a child that reads from it cannot be left behind.
package lifeline

import (
	"fmt"
	"os"
	"strconv"
)

// The environment variables that name the file descriptors a child inherits.
const (
	parentVariable = "YARE_PARENT_FD"
	readyVariable  = "YARE_READY_FD"
)

// Lifeline is the child's end. The zero value, and the lifeline of a process which was started
// by hand, do nothing.
type Lifeline struct {
	parent, ready *os.File
}

// Inherited returns the lifeline that the environment describes, or the zero value. It
// removes the description from the environment, so that no child of this process takes the
// descriptors for its own.
func Inherited() Lifeline {
	return Lifeline{parent: inherited(parentVariable), ready: inherited(readyVariable)}
}

func inherited(variable string) *os.File {
	fd, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return nil
	}
	os.Unsetenv(variable)
	return os.NewFile(uintptr(fd), variable)
}

// ExitWithParent ends this process as soon as the parent is gone. There is nothing to
// save: whatever a component of a temporary control plane leaves is swept later.
func (l Lifeline) ExitWithParent() {
	if l.parent == nil {
		return
	}
	// This goroutine ends with the process, never before it: nothing can wait for it.
	go func() {
		_, _ = l.parent.Read(make([]byte, 1)) // nobody writes: it returns at the end
		fmt.Fprintln(os.Stderr, "the process that started this one is gone: exiting")
		os.Exit(1)
	}()
}

// Ready reports to the parent that this process does its work now. Later calls have no
// effect.
func (l Lifeline) Ready() {
	if l.ready == nil {
		return
	}
	_, _ = l.ready.WriteString("ready\n") // a parent that is gone is noticed elsewhere
	_ = l.ready.Close()
}
