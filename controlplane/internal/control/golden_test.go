package control_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yare-go/yare/controlplane/internal/control"
	"github.com/yare-go/yare/controlplane/internal/supervise"
)

// golden holds examples of all messages. The test of the other end of the protocol, package
// internal/plane of the root module, reads the same file.
const golden = "../../../internal/plane/testdata/control.jsonl"

// Each message of the golden file is one that this end writes or understands as it stands
// there, and the file has an example of each field, verb and event: the two ends cannot drift
// apart.
func TestProtocolIsThatOfTheGoldenFile(t *testing.T) {
	content, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[reflect.Type]map[string]bool{}
	var verbs, events []string
	for line := range strings.Lines(string(content)) {
		var keys map[string]any
		if err := json.Unmarshal([]byte(line), &keys); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var message any
		switch {
		case keys["event"] != nil:
			events = append(events, keys["event"].(string))
			message = new(control.Event)
		case keys["do"] != nil:
			verbs = append(verbs, keys["do"].(string))
			message = new(control.Request)
		default:
			message = new(control.Answer)
		}
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(message); err != nil {
			t.Errorf("%s%v", line, err)
			continue
		}
		var output bytes.Buffer
		control.NewWriter(&output).Write(message)
		if got := output.String(); got != line {
			t.Errorf("the golden file has\n%sand this end writes\n%s", line, got)
		}
		kind := reflect.TypeOf(message).Elem()
		if fields[kind] == nil {
			fields[kind] = map[string]bool{}
		}
		for key := range keys {
			fields[kind][key] = true
		}
	}
	for _, kind := range []reflect.Type{reflect.TypeFor[control.Event](), reflect.TypeFor[control.Request](), reflect.TypeFor[control.Answer]()} {
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if !fields[kind][name] {
				t.Errorf("the golden file has no %s with the field %q", kind.Name(), name)
			}
		}
	}
	for _, verb := range verbs {
		if !supervise.Verb(verb).IsValid() && verb != control.Compact {
			t.Errorf("this end does not know the verb %q", verb)
		}
	}
	for _, verb := range []supervise.Verb{supervise.Start, supervise.Stop, supervise.Kill, supervise.Restart, supervise.Pause, supervise.Resume, control.Compact} {
		if !slices.Contains(verbs, string(verb)) {
			t.Errorf("the golden file has no request to %s", verb)
		}
	}
	if want := []string{control.Starting, control.Ready, control.Exited, control.Failed}; !slices.Equal(events, want) {
		t.Errorf("the golden file has the events %v, and this end writes %v", events, want)
	}
}
