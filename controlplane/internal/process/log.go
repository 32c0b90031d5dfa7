package process

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

// Log is the part of a log file that one run of a child wrote.
type Log struct {
	file  *os.File
	path  string
	start int64
}

func openLog(path string) (*Log, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	start, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("open a log: %w", err)
	}
	return &Log{file: file, path: path, start: start}, nil
}

const (
	// tailBytes bounds how much of a log is read back.
	tailBytes = 64 << 10
	// tailLine bounds a line that is shown.
	tailLine = 400
)

// Tail returns the last lines, and at most the given number of lines.
func (l *Log) Tail(lines int) string {
	content := bytes.TrimRight(l.end(), "\n")
	if len(content) == 0 {
		return ""
	}
	all := strings.Split(string(content), "\n")
	last := all[max(0, len(all)-lines):]
	for i, line := range last {
		if len(line) > tailLine {
			last[i] = strings.ToValidUTF8(line[:tailLine], "") + " ..."
		}
	}
	return strings.Join(last, "\n")
}

// Contains reports whether the end of the log contains a text.
func (l *Log) Contains(text string) bool {
	return bytes.Contains(l.end(), []byte(text))
}

func (l *Log) end() []byte {
	file, err := os.Open(l.path)
	if err != nil {
		return nil
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	from := max(l.start, size-tailBytes)
	content, _ := io.ReadAll(io.NewSectionReader(file, from, size-from))
	return content
}

// prefixed writes whole lines to a writer that several processes share. Each line begins with the name of its
// process.
type prefixed struct {
	output io.Writer // used by one goroutine for each process: each Write is one line
	prefix string
	rest   []byte // the beginning of a line whose end was not written yet
}

func newPrefixed(output io.Writer, name string) *prefixed {
	return &prefixed{output: output, prefix: "[" + name + "] "}
}

func (p *prefixed) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(text), nil
		}
		// A terminal that is gone must not stop the component.
		_, _ = p.output.Write(append(append([]byte(p.prefix), line...), '\n'))
		p.rest = bytes.Clone(rest)
	}
}
