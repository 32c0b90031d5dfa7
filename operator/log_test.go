package operator

import (
	"bytes"
	"encoding/json"
	"log"
	"log/slog"
	"strings"
	"testing"
)

// Without a terminal the log is JSON, one object a line. -v adds details.
func TestLogForMachines(t *testing.T) {
	t.Parallel()
	for _, verbose := range []bool{false, true} {
		var b bytes.Buffer
		log := newLogger(&b, verbose)
		log.Debug("a detail")
		log.Info("hello", "n", 7)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if want := map[bool]int{false: 1, true: 2}[verbose]; len(lines) != want {
			t.Errorf("verbose %t: %d lines", verbose, len(lines))
		}
		var last struct {
			Msg string
			N   int
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Msg != "hello" || last.N != 7 {
			t.Errorf("verbose %t: %v: %s", verbose, err, b.String())
		}
	}
}

// The author's own calls of slog write to the log of the program while it runs.
func TestDefaultLogger(t *testing.T) {
	before, output, flags := slog.Default(), log.Writer(), log.Flags()
	var b bytes.Buffer
	restore := setDefaultLogger(newLogger(&b, false))
	slog.Info("from the author")
	log.Print("from a library")
	restore()
	if !strings.Contains(b.String(), "from the author") || !strings.Contains(b.String(), "from a library") {
		t.Errorf("logged: %q", b.String())
	}
	if slog.Default() != before || log.Writer() != output || log.Flags() != flags {
		t.Error("the previous defaults are not restored")
	}
}
