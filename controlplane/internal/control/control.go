// Package control defines the protocol of `up --control`: one JSON object a line, requests on
// standard input, events and answers on standard output. The other end is package
// internal/plane of the root module. The file internal/plane/testdata/control.jsonl there holds
// both ends to the same protocol.
package control

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// The verbs that are not about one component. Package supervise has the others.
const (
	Compact  = "compact"
	Shutdown = "shutdown"
)

// Request asks for an action. Its answer has the same ID.
type Request struct {
	ID        json.RawMessage `json:"id"`
	Do        string          `json:"do"`
	Component string          `json:"component,omitempty"`
}

// Answer is the answer to a request.
type Answer struct {
	ID       json.RawMessage `json:"id"`
	OK       bool            `json:"ok,omitempty"`
	Error    string          `json:"error,omitempty"`
	PID      int             `json:"pid,omitempty"`
	Revision int64           `json:"revision,omitempty"`
}

// Event reports something that happened without a request.
type Event struct {
	Event      string         `json:"event"`
	Component  string         `json:"component,omitempty"`
	Kubeconfig string         `json:"kubeconfig,omitempty"`
	Server     string         `json:"server,omitempty"`
	Dir        string         `json:"dir,omitempty"`
	Seconds    float64        `json:"seconds,omitempty"`
	PIDs       map[string]int `json:"pids,omitempty"`
	Error      string         `json:"error,omitempty"`
	Log        string         `json:"log,omitempty"`
}

// The events.
const (
	Starting = "starting" // a component is being started
	Ready    = "ready"    // the plane can be used
	Exited   = "exited"   // a component ended by itself
	Failed   = "failed"   // the plane ends
)

// maxLine bounds a request. They are all short.
const maxLine = 1 << 20

// Requests calls handle with each request until the input ends or cannot be read. A line that
// is no request is answered with an error. Requests returns nil at the end of the input.
func Requests(input io.Reader, output *Writer, handle func(Request)) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var request Request
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			output.Write(Answer{Error: fmt.Sprintf("not a request: %v", err)})
			continue
		}
		handle(request)
	}
	return lines.Err()
}

// Writer writes events and answers. Its methods may be called from any goroutine.
type Writer struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

// NewWriter returns a Writer to output.
func NewWriter(output io.Writer) *Writer {
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	return &Writer{encoder: encoder}
}

// Write writes an Event or an Answer as one line. It ignores errors: when nobody reads the
// output any more, the input ends too.
func (w *Writer) Write(message any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.encoder.Encode(message)
}
