package logctx

import (
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// PanicSite returns the file and the line of the statement that panicked, as in main.go:42. It is
// empty if there was no panic.
func PanicSite() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	hasPanicked := false
	for {
		frame, more := frames.Next()
		isRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if hasPanicked && !isRuntime {
			return frame.File + ":" + strconv.Itoa(frame.Line)
		}
		hasPanicked = hasPanicked || frame.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}

// PanicStack returns the stack of the goroutine from the statement that panicked on, without what the
// recovery has added.
func PanicStack() string {
	stack := string(debug.Stack())
	goroutine, rest, _ := strings.Cut(stack, "\n")
	_, rest, found := strings.Cut("\n"+rest, "\npanic(")
	if !found {
		return stack
	}
	// The frame of panic has two lines.
	if frames := strings.SplitN(rest, "\n", 3); len(frames) == 3 {
		return goroutine + "\n" + frames[2]
	}
	return stack
}
