package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/yare-go/yare/internal/testkit/bound"
)

// readFrames returns the frames of a stream, and its error.
func readFrames(stream io.Reader) (frames []string, last error) {
	for frame, err := range Frames(stream) {
		if last = err; err == nil {
			frames = append(frames, frame.Type+" "+string(frame.Object))
		}
	}
	return frames, last
}

func TestFrames(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789", 20_000)
	for _, test := range []struct {
		name, stream string
		want         []string
		err          string
	}{
		{"none", "", nil, ""},
		{"two", `{"type":"ADDED","object":{"a":1}}` + "\n" + `{"type":"BOOKMARK","object":{}}` + "\n", []string{`ADDED {"a":1}`, "BOOKMARK {}"}, ""},
		{"without newlines", `{"type":"ADDED","object":{}}{"type":"DELETED","object":{}}`, []string{"ADDED {}", "DELETED {}"}, ""},
		{"broken off", `{"type":"ADDED","object":{}}` + "\n" + `{"type":"ADD`, []string{"ADDED {}"}, "read the watch"},
		{"no JSON", `<html>`, nil, "read the watch"},
		{"blank lines", " \n\r\n" + `{"type":"ADDED","object":{}}` + "\n\n \n", []string{"ADDED {}"}, ""},
		{"many lines", "{\"type\": \"ADDED\",\n \"object\": {\"a\":\n1}\n}\n" + `{"type":"DELETED","object":{}}`, []string{"ADDED {\"a\":\n1}", "DELETED {}"}, ""},
		{"escapes", `{"typ\u0065":"AD\u0044ED","objec\u0074":{"a\n":"\""}}` + "\n" + `{"type":"DELETED","object":{}}` + "\n", []string{`ADDED {"a\n":"\""}`, "DELETED {}"}, ""},
		{"two of a name", `{"type":"DELETED","object":{"a":1},"other":[],"type":"ADDED","object":{"a":2}}` + "\n", []string{`ADDED {"a":2}`}, ""},
		{"invalid UTF-8", "{\"type\":\"ADDED\",\"object\":{\"a\":\"\xff\"}}\n", []string{"ADDED {\"a\":\"\xff\"}"}, ""},
		{"large", `{"type":"ADDED","object":{"a":"` + large + `"}}` + "\n" + `{"type":"ADDED","object":{}}` + "\n", []string{`ADDED {"a":"` + large + `"}`, "ADDED {}"}, ""},
		{"not well-formed", `{"type":"ADDED","object":{}}` + "\n" + `{"type":"ADDED","object":{"a":01}}` + "\n" + `{"type":"ADDED","object":{}}` + "\n", []string{"ADDED {}"}, "read the watch"},
		{"cut by a newline", `{"type":"ADDED","object":{"a":"` + "\n" + `"}}` + "\n", nil, "read the watch"},
		{"wrong type", `{"type":7}`, nil, "read the watch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for name, stream := range map[string]io.Reader{
				"at once": strings.NewReader(test.stream), "byte by byte": iotest.OneByteReader(strings.NewReader(test.stream)),
				"with its end": iotest.DataErrReader(strings.NewReader(test.stream)),
			} {
				got, last := readFrames(stream)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				if test.err == "" && last != nil || test.err != "" && (last == nil || !strings.Contains(last.Error(), test.err)) {
					t.Errorf("%s: the error is %v", name, last)
				}
			}
		})
	}
}

// A frame is served when its last byte has arrived, whether a newline follows or not.
func TestFrameIsNotHeldBack(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	next := make(chan bool)
	go func() {
		for _, text := range []string{
			`{"type":"ADDED","object":{}}`, "\n" + `{"type":"ADD`, `ED","object":{"a":{}`, `}}`, `{"type":"ADDED","object":{}}` + "\n",
		} {
			_, _ = io.WriteString(write, text)
			if strings.HasSuffix(strings.TrimSpace(text), "}}") {
				<-next
			}
		}
		write.CloseWithError(errors.New("reset"))
	}()
	var last error
	n := 0
	for _, err := range Frames(read) {
		if last = err; err == nil {
			n++
			next <- true
		}
	}
	if n != 3 || last == nil || !strings.Contains(last.Error(), "reset") {
		t.Errorf("%d frames, and the error is %v", n, last)
	}
}

// Frames yields the frames that a decoder finds, however they arrive.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"a":1}}`+"\n"+`{"type":"ADDED","object":{"a":[{}]}}`+"\n"), uint8(7))
	f.Add([]byte(`{"type":"ADDED","object":{}}{"type":null,"object":{}}`+"\n {\n}"), uint8(1))
	f.Add([]byte(`{"type":"A\u0041","object":"\n"}`+"\n"+`{"type":"","object":{},}`), uint8(30))
	f.Add([]byte("\v\n"), uint8(1))                                 // a line of white space that JSON does not have was skipped
	f.Add([]byte("{\"type\":\"A\xad\",\"object\":{}}\n"), uint8(1)) // invalid UTF-8 in a type depended on how the bytes arrived
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8) {
		decoder := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		var want []string
		var wantErr error
		for {
			value, err := decoder.ReadValue()
			if errors.Is(err, io.EOF) {
				break
			}
			var frame Frame
			if err == nil {
				frame, err = decodeFrame(value)
			}
			if wantErr = err; err != nil {
				break
			}
			want = append(want, frame.Type+" "+string(frame.Object))
		}
		got, err := readFrames(chunked{bytes.NewReader(data), int(chunk) + 1})
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s\nerror %v, want %v", diff, err, wantErr)
		}
	})
}

// chunked is a reader that returns at most size bytes at a time.
type chunked struct {
	io.Reader
	size int
}

func (c chunked) Read(to []byte) (int, error) { return c.Reader.Read(to[:min(len(to), c.size)]) }

// BenchmarkFrames reads a stream of frames of 1.7 KB.
func BenchmarkFrames(b *testing.B) {
	line := `{"type":"ADDED","object":{"apiVersion":"example.com/v1","kind":"Shop","metadata":{"name":"a","namespace":"b","labels":{"x":"y"},"managedFields":[` +
		strings.Repeat(`{"fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:image":{},"f:replicas":{}}}},`, 10) + `{}]},"spec":{` +
		strings.Repeat(`"some-field":"some value, which is a little longer","replicas":5,`, 8) + `"end":true}}}` + "\n"
	stream := strings.Repeat(line, 500)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range Frames(strings.NewReader(stream)) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

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
