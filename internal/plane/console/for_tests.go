package console

import (
	"fmt"
	"os"
	"runtime"

	"github.com/yare-go/yare/internal/plane/process"
)

// ForTests returns a console that reaches the person behind `go test`, although the go command hides the output of a
// passing test. The console writes to the terminal, or else to the standard error of the go command, or else to the
// standard error of this process. Several test processes write there at once, so the console writes whole lines only.
//
// The file that the console writes to stays open until the process ends.
func ForTests(name string) *Console {
	c := New(testOutput(), name)
	c.rewritesLine = false
	c.minTaskTime = repeatPeriod // otherwise each test that starts a control plane would write a line
	c.prefix = name + ": "
	return c
}

// testOutput returns the file that the console of tests writes to.
func testOutput() *os.File {
	if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		return tty
	}
	if runtime.GOOS != "linux" || !process.ParentIsGo() {
		return os.Stderr
	}
	// The link opens the file itself anew. Without O_APPEND, a file to which the output is redirected would be
	// overwritten.
	name := fmt.Sprintf("/proc/%d/fd/2", os.Getppid())
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return os.Stderr // A socket, for one, cannot be opened anew.
	}
	theirs, err1 := file.Stat()
	ours, err2 := os.Stderr.Stat()
	if err1 == nil && err2 == nil && os.SameFile(theirs, ours) {
		_ = file.Close()
		return os.Stderr
	}
	return file
}
