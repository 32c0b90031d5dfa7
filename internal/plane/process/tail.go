package process

import (
	"bytes"
	"io"
	"sync"
)

// Tail is a writer that keeps the end of the output of a process. Its methods may be called concurrently.
type Tail struct {
	// Next receives everything that is written. It may be nil.
	Next io.Writer

	mu   sync.Mutex
	data []byte
}

// maxTail is the number of bytes that a Tail keeps.
const maxTail = 8 << 10

// Write keeps the end of data.
func (t *Tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	t.data = append(t.data, data...)
	if n := len(t.data) - maxTail; n > 0 {
		t.data = bytes.Clone(t.data[n:])
	}
	t.mu.Unlock()
	if t.Next != nil {
		return t.Next.Write(data)
	}
	return len(data), nil
}

// String returns what is kept, without white space at both ends.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.data))
}
