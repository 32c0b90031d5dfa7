package process

import (
	"bytes"
	"io"
)

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
