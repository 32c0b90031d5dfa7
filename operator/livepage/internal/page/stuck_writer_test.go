package page

import (
	"net/http"
	"strings"
	"sync"
)

// stuckWriter is the connection of a reader who reads nothing before release is closed.
type stuckWriter struct {
	header         http.Header
	stuck, release chan struct{}
	once           sync.Once

	mu    sync.Mutex
	wrote strings.Builder
}

func (w *stuckWriter) Header() http.Header { return w.header }
func (w *stuckWriter) WriteHeader(int)     {}
func (w *stuckWriter) Flush()              {}

func (w *stuckWriter) Write(text []byte) (int, error) {
	// The second event, because the first text comes before the reader is known.
	if strings.HasPrefix(string(text), "event:") {
		w.once.Do(func() { close(w.stuck) })
		<-w.release
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrote.Write(text)
}

func (w *stuckWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrote.String()
}
