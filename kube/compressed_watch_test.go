package kube

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/yare-go/yare/kube/wire"
)

// API servers from 1.37 on compress streaming lists, and all that follows on the same watch
// (WatchListCompression). Each time they have no more to send, they end a gzip member. The client
// must hand out each event before the next one comes. Older servers answer without compression.
func TestCompressedWatch(t *testing.T) {
	t.Parallel()
	for _, isCompressed := range []bool{true, false} {
		t.Run(fmt.Sprint(isCompressed), func(t *testing.T) {
			t.Parallel()
			checkCompressedWatch(t, isCompressed)
		})
	}
}

func checkCompressedWatch(t *testing.T, isCompressed bool) {
	t.Helper()
	const events = 5
	received := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("the watch accepts the encoding %q, want gzip", r.Header.Get("Accept-Encoding"))
		}
		if isCompressed {
			w.Header().Set("Content-Encoding", "gzip")
		}
		for i := range events {
			body, end := io.Writer(w), func() {}
			if isCompressed {
				z := gzip.NewWriter(w)
				// The API server flushes a member before it ends the member.
				body, end = z, func() {
					if err := errors.Join(z.Flush(), z.Close()); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := fmt.Fprintf(body, `{"type":"ADDED","object":{"metadata":{"name":"pod-%d"}}}`+"\n", i); err != nil {
				t.Error(err)
			}
			end()
			w.(http.Flusher).Flush()
			select {
			case <-received:
			case <-r.Context().Done():
				t.Errorf("the client did not receive the event %d", i)
				return
			}
		}
	})
	r, err := ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(t.Context(), &wire.Request{Verb: wire.VerbWatch, Resource: r})
	if err != nil {
		t.Fatal(err)
	}
	defer response.BodyReader.Close()
	n := 0
	for frame, err := range wire.Frames(response.BodyReader) {
		if err != nil {
			t.Fatalf("after %d events: %v", n, err)
		}
		if frame.Type != "ADDED" {
			t.Errorf("event %d: %s", n, frame.Type)
		}
		n++
		received <- struct{}{}
	}
	if n != events {
		t.Errorf("%d events, want %d", n, events)
	}
}
