package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// The control protocol: `controlplane up --control` writes events and answers and reads
// requests, each as one JSON object a line. At the end of its input the control plane ends.
// The other end is package control of the module controlplane. The tests of both ends read
// testdata/control.jsonl.

// message is a line from the control plane: an event, or the answer to a request.
type message struct {
	Event      string         `json:"event"`
	Component  string         `json:"component"`
	Error      string         `json:"error"`
	Log        string         `json:"log"`
	Kubeconfig string         `json:"kubeconfig"`
	Server     string         `json:"server"`
	Dir        string         `json:"dir"`
	Seconds    float64        `json:"seconds"`
	Pids       map[string]int `json:"pids"`

	ID       int   `json:"id"`
	OK       bool  `json:"ok"`
	Revision int64 `json:"revision"`
}

// command is a request to the control plane.
type command struct {
	ID        int    `json:"id"`
	Do        string `json:"do"`
	Component string `json:"component,omitempty"`
}

// control sends commands and returns each answer to the caller that waits for it.
type control struct {
	// sendMu is held while a line is written.
	sendMu sync.Mutex

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan message
}

// newControl returns a control that has sent nothing yet.
func newControl() *control {
	return &control{waiting: make(map[int]chan message)}
}

// call sends a command to the control plane and waits for its answer, until ctx or the control plane ends.
func (c *control) call(ctx context.Context, to *child, do, component string) (message, error) {
	request := do
	if component != "" {
		request += " " + component
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := c.send(to.in, command{ID: id, Do: do, Component: component}); err != nil {
		return message{}, fmt.Errorf("ask the control plane to %s: %w", request, err)
	}
	select {
	case m := <-answer:
		if m.Error != "" || !m.OK {
			return m, fmt.Errorf("ask the control plane to %s: %w", request, errors.New(m.Error))
		}
		return m, nil
	case <-to.process.Done():
		return message{}, fmt.Errorf("ask the control plane to %s: it has ended", request)
	case <-ctx.Done():
		return message{}, fmt.Errorf("ask the control plane to %s: %w", request, context.Cause(ctx))
	}
}

// send writes a command as one line.
func (c *control) send(to io.Writer, cmd command) error {
	line, err := json.Marshal(cmd)
	if err != nil {
		return err
	}
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	_, err = to.Write(append(line, '\n'))
	return err
}

// deliverAnswer passes an answer to the caller that waits for the answer.
func (c *control) deliverAnswer(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.waiting[m.ID]; ok {
		answer <- m // Never blocks: the channel has room for the only answer.
		delete(c.waiting, m.ID)
	}
}

// lineWriter calls receive with each line that is written to it. One goroutine writes to it.
type lineWriter struct {
	receive func(line []byte)
	partial []byte
}

func (l *lineWriter) Write(data []byte) (int, error) {
	l.partial = append(l.partial, data...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			return len(data), nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			l.receive(line)
		}
		l.partial = rest
	}
}
