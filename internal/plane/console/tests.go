package console

import (
	"fmt"
	"os"
	"runtime"

	"github.com/yare-go/yare/internal/plane/process"
)

// ForTests returns a console that reaches the person behind `go test`. The go command hides the output of a
// passing test. It writes to the terminal, or else to the standard error of the go command, or else to the
// standard error of this process. Several test processes write there at once, so it writes whole lines only.
//
// The file it may have opened stays open as long as the process.
func ForTests(name string) *Console {
	c := New(testOutput(), name)
	c.isLive = false
	c.patience = quiet // otherwise each test that starts a control plane would write a line
	c.prefix = name + ": "
	return c
}

func testOutput() *os.File {
	if tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0); err == nil {
		return tty
	}
	if runtime.GOOS != "linux" || !process.ParentIsGo() {
		return os.Stderr
	}
	// Opening the link opens the file itself anew: appending is what keeps a redirection
	// to a file from being overwritten.
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
