package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/yare-go/yare/internal/jsonscan"
	"github.com/yare-go/yare/internal/jsonscan/kubejson"
)

// Frame is one event of a watch as the server sent it, not decoded.
type Frame struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string
	// Object is a whole object, or the Status of an ERROR. It is valid until the next
	// Frame is read.
	Object jsontext.Value
}

// Frames returns the events in the answer to a watch. The sequence ends without an error when the stream
// ends, and with an error when the stream breaks off within an event.
func Frames(stream io.Reader) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		r := frameReader{stream: stream}
		for {
			frame, err := r.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Frame{}, fmt.Errorf("read the watch: %w", err))
				return
			}
			if !yield(frame, nil) {
				return
			}
		}
	}
}

const (
	// minFrameBuffer is the size of an idle buffer for frames, in bytes.
	minFrameBuffer = 4 << 10
	// maxFrameBuffer is the size of a buffer for frames while much arrives. Only a larger frame makes the
	// buffer larger.
	maxFrameBuffer = 64 << 10
)

// frameReader reads the frames of a stream. An API server ends each frame with a newline, and
// writes no other newline. One pass over a frame checks the JSON and finds the parts of the frame.
// Everything else is left to a decoder.
type frameReader struct {
	stream io.Reader
	// buffer[from:to] was read and is no part of an earlier frame.
	buffer   []byte
	from, to int
	// buffer[from:searched] is known to have no newline.
	searched int
	// lastRead is how many bytes the last read returned.
	lastRead int
	// err is the error that ends the stream behind what was read.
	err error
	// decoder reads the rest of the stream if it is not nil.
	decoder *jsontext.Decoder
}

// next returns the next frame, which is valid until the next call. Its error is io.EOF at the end
// of the stream.
func (r *frameReader) next() (Frame, error) {
	for r.decoder == nil {
		if n := bytes.IndexByte(r.buffer[r.searched:r.to], '\n'); n >= 0 {
			end := r.searched + n
			line := r.buffer[r.from:end]
			frame, ok := scanFrame(line)
			if !ok && len(bytes.Trim(line, " \t\r")) > 0 { // other white space is no part of JSON
				r.startDecoder()
				break
			}
			r.from, r.searched = end+1, end+1
			if ok {
				return frame, nil
			}
			continue
		}
		r.searched = r.to
		// A frame without a newline is not held back until another frame comes.
		if r.from < r.to && r.buffer[r.to-1] == '}' {
			if frame, ok := scanFrame(r.buffer[r.from:r.to]); ok {
				r.from = r.to
				return frame, nil
			}
		}
		if r.err != nil {
			r.startDecoder()
			break
		}
		r.read()
	}
	value, err := r.decoder.ReadValue()
	if err != nil {
		return Frame{}, err
	}
	return decodeFrame(value)
}

// read reads what the stream has, and waits until there is something. The size of the buffer follows what arrives.
//
// For example, a stream list fills the buffer of 4 KB, which grows to 8, 16, 32 and 64 KB, because each read returns
// more than half of its size. Afterwards single events of 2 KB arrive. A read that returns less than an eighth of the
// size is followed by a buffer of 4 KB again.
func (r *frameReader) read() {
	unread := r.buffer[r.from:r.to]
	size := len(r.buffer)
	switch {
	case len(unread) > size/2:
		size *= 2
	case r.lastRead > size/2 && size < maxFrameBuffer:
		size *= 2
	case len(unread) < minFrameBuffer/2 && r.lastRead < size/8:
		size = minFrameBuffer
	}
	size = max(size, minFrameBuffer)
	buffer := r.buffer
	if size != len(r.buffer) {
		buffer = make([]byte, size)
	}
	r.searched -= r.from
	r.from, r.to = 0, copy(buffer, unread)
	r.buffer, r.lastRead = buffer, 0
	for range maxEmptyReads {
		r.lastRead, r.err = r.stream.Read(r.buffer[r.to:])
		r.to += r.lastRead
		if r.lastRead > 0 || r.err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// maxEmptyReads is the number of reads in a row that may return nothing.
const maxEmptyReads = 100

// startDecoder leaves what was read and the rest of the stream to a decoder.
func (r *frameReader) startDecoder() {
	rest := r.stream
	if r.err != nil {
		rest = failingReader{r.err}
	}
	r.decoder = jsontext.NewDecoder(io.MultiReader(bytes.NewReader(r.buffer[r.from:r.to]), rest),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// failingReader is a reader that returns an error.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// scanFrame returns the parts of a frame. It reports false unless data is one well-formed frame
// whose type is a string of valid UTF-8 without escapes.
func scanFrame(data []byte) (f Frame, ok bool) {
	ok = jsonscan.ValidMembers(data, func(name, value []byte) {
		switch string(name) {
		case "type":
			f.Type = ""
			if n := len(value); value[0] == '"' && bytes.IndexByte(value, '\\') < 0 && utf8.Valid(value) {
				f.Type = eventType(value[1 : n-1])
			}
		case "object":
			f.Object = value
		}
	})
	return f, ok && f.Type != ""
}

// decodeFrame decodes a frame, which is well-formed JSON. In contrast to scanFrame, it accepts a type with escapes.
func decodeFrame(value []byte) (Frame, error) {
	if len(value) == 0 || value[0] != '{' {
		return Frame{}, fmt.Errorf("%.20q is not an event", value)
	}
	var f struct {
		Type   string         `json:"type"`
		Object jsontext.Value `json:"object"`
	}
	err := kubejson.Unmarshal(value, &f)
	return Frame(f), err
}

// eventType returns the text of a type. Known types need no memory of their own.
func eventType(text []byte) string {
	switch string(text) {
	case "ADDED":
		return "ADDED"
	case "MODIFIED":
		return "MODIFIED"
	case "DELETED":
		return "DELETED"
	}
	return string(text)
}
