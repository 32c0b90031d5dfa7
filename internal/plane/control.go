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
// The other end is package control of the module controlplane. testdata/control.jsonl holds
// both ends to the same protocol.

// A message is a line from the control plane: an event, or the answer to a request.
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

// A command is a request to the control plane.
type command struct {
	ID        int    `json:"id"`
	Do        string `json:"do"`
	Component string `json:"component,omitempty"`
}

// A control sends commands and returns each answer to the caller that waits for it.
type control struct {
	writing sync.Mutex // held while a line is written
	in      io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
}

func newControl(in io.WriteCloser) *control {
	return &control{in: in, waiting: make(map[int]chan message)}
}

// call sends a command and waits for its answer until ctx ends or ended is closed.
func (c *control) call(ctx context.Context, ended <-chan struct{}, do, component string) (message, error) {
	doing := do
	if component != "" {
		doing += " " + component
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := c.send(command{ID: id, Do: do, Component: component}); err != nil {
		return message{}, fmt.Errorf("asking the control plane to %s: %w", doing, err)
	}
	select {
	case m := <-answer:
		if m.Error != "" || !m.OK {
			return m, fmt.Errorf("asking the control plane to %s: %w", doing, errors.New(m.Error))
		}
		return m, nil
	case <-ended:
		return message{}, fmt.Errorf("asking the control plane to %s: it has ended", doing)
	case <-ctx.Done():
		return message{}, fmt.Errorf("asking the control plane to %s: %w", doing, context.Cause(ctx))
	}
}

func (c *control) send(cmd command) error {
	line, err := json.Marshal(cmd)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.in.Write(append(line, '\n'))
	return err
}

func (c *control) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.waiting[m.ID]; ok {
		answer <- m // Never blocks: the channel has room for the only answer.
		delete(c.waiting, m.ID)
	}
}

// A lineWriter calls handle for each line written to it. One goroutine writes to it.
type lineWriter struct {
	handle  func(line []byte)
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
			l.handle(line)
		}
		l.partial = rest
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
	next io.Writer // gets everything, if not nil
}

func (t *tail) Write(data []byte) (int, error) {
	const kept = 8 << 10
	t.mu.Lock()
	t.data = append(t.data, data...)
	if len(t.data) > kept {
		t.data = append([]byte(nil), t.data[len(t.data)-kept:]...)
	}
	t.mu.Unlock()
	if t.next != nil {
		return t.next.Write(data)
	}
	return len(data), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.data))
}
