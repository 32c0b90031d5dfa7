package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/process"
)

// answering is the input of a control plane that carries out every command.
type answering struct {
	plane *Plane
	got   bytes.Buffer
}

func (a *answering) Write(line []byte) (int, error) {
	a.got.Write(line)
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return 0, err
	}
	a.plane.control.deliverAnswer(message{ID: c.ID, OK: true})
	return len(line), nil
}

func (a *answering) Close() error { return nil }

// This end of the control protocol sends the requests of the golden file and understands each
// field of its events and answers. The test of the other end, package control of the module
// controlplane, reads the same file.
func TestProtocolIsThatOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/control.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var requests, messages []string
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, `"do":`) {
			requests = append(requests, line)
		} else {
			messages = append(messages, line)
		}
	}

	var output safeBuffer
	p := &Plane{control: newControl(), console: console.New(&output, "yare"), startResult: make(chan message, 2)}
	in := &answering{plane: p}
	p.child = &child{process: &process.Process{}, in: in, stderr: &process.Tail{}, startTask: p.console.Task()}
	ctx := t.Context()
	_, compactErr := p.Compact(ctx)
	compact := strings.Replace(in.got.String(), `"id":1`, `"id":7`, 1)
	in.got.Reset()
	p.control.lastID = 0
	for _, err := range []error{
		p.StartComponent(ctx, "etcd"), p.Stop(ctx, "kube-apiserver"), p.Kill(ctx, "kube-apiserver"),
		p.Restart(ctx, "kube-apiserver"), p.Pause(ctx, "kube-scheduler"), p.Resume(ctx, "kube-scheduler"), compactErr,
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if got, want := in.got.String()+compact, strings.Join(requests, ""); got != want {
		t.Errorf("this end sends\n%sand the golden file has\n%s", got, want)
	}

	seen := map[string]bool{"pid": true} // of an answer: nobody here asks for it
	known := []string{"pid"}
	for field := range reflect.TypeFor[message]().Fields() {
		known = append(known, field.Tag.Get("json"))
	}
	for _, line := range messages {
		var keys map[string]any
		if err := json.Unmarshal([]byte(line), &keys); err != nil {
			t.Fatalf("%s%v", line, err)
		}
		for key := range keys {
			seen[key] = true
			if !slices.Contains(known, key) {
				t.Errorf("this end does not read the field %q of %s", key, line)
			}
		}
		p.receiveLine(p.child, []byte(line))
	}
	for _, key := range known {
		if !seen[key] {
			t.Errorf("this end reads the field %q, which no message of the golden file has", key)
		}
	}
	ready, failed := <-p.startResult, <-p.startResult
	if ready.Event != "ready" || ready.Kubeconfig == "" || ready.Server == "" || ready.Dir == "" || ready.Seconds != 2.9 || ready.Pids["etcd"] != 123 {
		t.Errorf("ready is %+v", ready)
	}
	if failed.Event != "failed" || failed.Error == "" || failed.Log == "" {
		t.Errorf("failed is %+v", failed)
	}
	if !strings.Contains(output.String(), "etcd ended unexpectedly") {
		t.Errorf("the end of a component was not reported:\n%s", output.String())
	}
}

// The answers of the golden file are returned to the caller.
func TestAnswersOfTheGoldenFile(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/control.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s%v", line, err)
		}
		if strings.Contains(line, `"do":`) || m.Event != "" {
			continue
		}
		p := &Plane{control: newControl()}
		p.child = &child{process: &process.Process{}, in: &answeringWith{plane: p, line: line}}
		p.control.lastID = m.ID - 1
		got, err := p.control.call(context.Background(), p.child, "restart", "kube-apiserver")
		if (err == nil) != m.OK || got.Revision != m.Revision || err != nil && !strings.Contains(err.Error(), m.Error) {
			t.Errorf("the answer %sgives %+v, %v", line, got, err)
		}
	}
}

// answeringWith is the input of a control plane that answers with a line.
type answeringWith struct {
	plane *Plane
	line  string
}

func (a *answeringWith) Write(data []byte) (int, error) {
	a.plane.receiveLine(a.plane.child, []byte(a.line))
	return len(data), nil
}

func (a *answeringWith) Close() error { return nil }
