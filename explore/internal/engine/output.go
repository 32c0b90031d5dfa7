package engine

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// maxLines is how many lines of a run are kept.
const maxLines = 2000

// output keeps the last lines that the processes of a run write. Its methods are safe for concurrent use.
type output struct {
	mu    sync.Mutex
	lines []string
	// incomplete is the beginning of a line whose end has not been written yet.
	incomplete []byte
}

// Write implements [io.Writer].
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.incomplete = append(o.incomplete, text...)
	for {
		line, rest, ok := bytes.Cut(o.incomplete, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		o.lines, o.incomplete = append(o.lines, string(line)), rest
		if len(o.lines) > 2*maxLines {
			o.lines = append(o.lines[:0], o.lines[maxLines:]...)
		}
	}
}

// last returns the last n lines, or fewer.
func (o *output) last(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines[max(0, len(o.lines)-n):], "\n")
}

// errorPattern matches the lines with errors in the logs of slog, of yare at a terminal, of klog, of zap and
// of logrus.
const errorPattern = `^E\d{4} |^\d\d:\d\d:\d\d ERR |level=(ERROR|error)\b|"level":"(ERROR|error)"|\tERROR\t`

// maxErrorLine is how many bytes of a line with an error are shown.
const maxErrorLine = 300

// errorLines returns the lines with errors, in the order in which they were written. Long lines are cut.
func (o *output) errorLines() (lines []string) {
	pattern := regexp.MustCompile(errorPattern)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range o.lines {
		if pattern.MatchString(line) {
			lines = append(lines, strings.ToValidUTF8(line[:min(len(line), maxErrorLine)], ""))
		}
	}
	return lines
}

// errorShape returns the words of a line with an error that are equal in all runs, so that errors of two runs can be
// compared. Words with digits and words without vowels are left out: they are times, numbers, uids and the ends of
// namespaces. Example: `E1126 12:00:00 x.go:7] "Reconciler error" namespace="test-qtjgk"` gives "go Reconciler error
// namespace test".
func errorShape(line string) string {
	words := strings.FieldsFunc(line, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return strings.Join(slices.DeleteFunc(words, func(word string) bool {
		return strings.ContainsFunc(word, unicode.IsDigit) || !strings.ContainsAny(word, "aeiouAEIOU")
	}), " ")
}
