package kube

import (
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/bound"
)

// repeated is a stream that repeats text for ever.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(to []byte) (int, error) {
	n := copy(to, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// Reading a frame allocates nothing.
func TestAllocationsOfFrames(t *testing.T) {
	r := frameReader{stream: &repeated{text: `{"type":"MODIFIED","object":{"metadata":{"name":"a"},"spec":{"text":"` + strings.Repeat("some text ", 400) + `"}}}` + "\n"}}
	bound.CheckAllocations(t, "a frame", 0, func() {
		if _, err := r.next(); err != nil {
			t.Fatal(err)
		}
	})
}
