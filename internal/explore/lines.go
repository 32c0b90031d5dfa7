package explore

import (
	"bytes"
	"strings"
	"sync"
)

// maxLogLines is how many lines of a program's log are kept.
const maxLogLines = 2000

// lines keeps the last lines that are written to it.
type lines struct {
	mu   sync.Mutex
	kept []string
	rest []byte
}

// Write implements [io.Writer].
func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(text), nil
		}
		l.kept, l.rest = append(l.kept, string(line)), rest
		if len(l.kept) > 2*maxLogLines {
			l.kept = append(l.kept[:0], l.kept[maxLogLines:]...)
		}
	}
}

// last returns the last n lines, or fewer.
func (l *lines) last(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.kept[max(0, len(l.kept)-n):], "\n")
}
