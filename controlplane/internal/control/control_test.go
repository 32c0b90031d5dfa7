package control

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

func TestRequests(t *testing.T) {
	input := strings.Join([]string{
		`{"id":1,"do":"kill","component":"etcd"}`,
		``,
		`nonsense`,
		`{"id":"two","do":"compact"}`,
	}, "\n")
	var output bytes.Buffer
	var got []Request
	if err := Requests(strings.NewReader(input), NewWriter(&output), func(r Request) { got = append(got, r) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Do != "kill" || got[0].Component != "etcd" || string(got[1].ID) != `"two"` {
		t.Errorf("requests are %+v", got)
	}
	if !strings.Contains(output.String(), `"error":"not a request`) {
		t.Errorf("the line that is no request was answered with %q", output.String())
	}
}

func TestAnswerOnTheWire(t *testing.T) {
	for want, message := range map[string]any{
		`{"id":1,"ok":true}`:                      Answer{ID: json.RawMessage("1"), OK: true},
		`{"id":1,"error":"a < b"}`:                Answer{ID: json.RawMessage("1"), Error: "a < b"},
		`{"id":1,"ok":true,"revision":7}`:         Answer{ID: json.RawMessage("1"), OK: true, Revision: 7},
		`{"event":"starting","component":"etcd"}`: Event{Event: Starting, Component: "etcd"},
	} {
		var output bytes.Buffer
		NewWriter(&output).Write(message)
		if got := strings.TrimSuffix(output.String(), "\n"); got != want {
			t.Errorf("wrote %s, want %s", got, want)
		}
	}
}

func TestWriterKeepsLinesWhole(t *testing.T) {
	var output bytes.Buffer
	w := NewWriter(&output)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { w.Write(Event{Event: Exited, Log: strings.Repeat("x", 1000)}) })
	}
	group.Wait()
	for line := range strings.Lines(output.String()) {
		if !json.Valid([]byte(line)) {
			t.Fatalf("not a JSON line: %.80q", line)
		}
	}
}
