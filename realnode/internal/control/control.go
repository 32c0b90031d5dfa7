// Package control defines the protocol between `realnode up` and its caller: one JSON object a
// line, events on standard output, requests on standard input. The end of the input ends the node.
// The other end is package internal/plane of the root module.
package control

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
)

// The events.
const (
	// Prepared means that the API server can be started, with the arguments of the event.
	Prepared = "prepared"
	// Starting means that a component is being started.
	Starting = "starting"
	// Loaded means that images were imported.
	Loaded = "loaded"
	// Ready means that the node runs Pods.
	Ready = "ready"
	// Warning means that something works less well than it could.
	Warning = "warning"
	// Exited means that a component ended by itself, and is started again.
	Exited = "exited"
	// Failed means that the node ends.
	Failed = "failed"
)

// Event reports something that happened.
type Event struct {
	Event     string `json:"event"`
	Component string `json:"component,omitempty"`
	// APIServerArgs are the arguments that kube-apiserver needs.
	APIServerArgs []string `json:"apiServerArgs,omitempty"`
	// Socket is the path of containerd's socket.
	Socket string `json:"socket,omitempty"`
	// Node is the name of the node, and Address its address.
	Node    string   `json:"node,omitempty"`
	Address string   `json:"address,omitempty"`
	Images  []string `json:"images,omitempty"`
	Error   string   `json:"error,omitempty"`
	// Log is the end of the component's log.
	Log string `json:"log,omitempty"`
}

// The requests.
const (
	// Start lets the node begin: its link exists.
	Start = "start"
	// Join lets the node become part of a cluster.
	Join = "join"
)

// Request asks for an action.
type Request struct {
	Do string `json:"do"`
	// Kubeconfig is the path of the file with which a node joins a cluster.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// Writer writes events or requests as lines. Its methods may be called from any goroutine.
type Writer struct {
	mu     sync.Mutex
	output io.Writer
}

// NewWriter returns a Writer to output.
func NewWriter(output io.Writer) *Writer { return &Writer{output: output} }

// Write writes an Event or a Request. It ignores errors: when the other end is gone, the input of
// this process ends too.
func (w *Writer) Write(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		return // all fields are strings
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.output.Write(append(line, '\n'))
}

// Requests returns a channel of the requests that are read from input. The channel is closed at
// the end of the input. Lines that are no requests are left out.
func Requests(input io.Reader) <-chan Request {
	requests := make(chan Request)
	// This goroutine ends with the input: a read of standard input cannot be interrupted.
	go func() {
		defer close(requests)
		lines := bufio.NewScanner(input)
		for lines.Scan() {
			var request Request
			if err := json.Unmarshal(lines.Bytes(), &request); err == nil {
				requests <- request
			}
		}
	}()
	return requests
}
