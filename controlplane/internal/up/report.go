package up

import (
	"fmt"
	"io"
	"strings"

	"github.com/yare-go/yare/controlplane/internal/control"
)

// reporter publishes events to people or to a program.
type reporter interface {
	report(control.Event)
}

// jsonReporter writes events for a program, as JSON lines.
type jsonReporter struct{ output *control.Writer }

func (r jsonReporter) report(event control.Event) { r.output.Write(event) }

// textReporter writes events for people, in short lines. Each event is one write, so lines of
// different goroutines do not mix.
type textReporter struct{ output io.Writer }

func (r textReporter) report(e control.Event) {
	switch e.Event {
	case control.Starting:
		fmt.Fprintf(r.output, "starting %s\n", e.Component)
	case control.Ready:
		fmt.Fprintf(r.output, "ready after %.1f s: %s\nlogs: %s/logs\n\n  export KUBECONFIG=%s\n\n",
			e.Seconds, e.Server, e.Dir, quote(e.Kubeconfig))
	case control.Exited:
		fmt.Fprintf(r.output, "%s; it is restarted, up to four times in a row; the end of its log:\n%s\n",
			e.Error, indent(e.Log))
	case control.Failed:
		if e.Log != "" {
			fmt.Fprintf(r.output, "the end of the log of %s:\n%s\n", e.Component, indent(e.Log))
		}
	}
}

// quote returns a path as one word of a shell.
func quote(path string) string {
	if strings.ContainsAny(path, " \t'\"$&();<>|*?[]#~`\\") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

func indent(text string) string {
	return "  | " + strings.ReplaceAll(text, "\n", "\n  | ")
}
