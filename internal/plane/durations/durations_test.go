package durations

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
)

func TestFileKnowsTheLastDuration(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "yare", "durations.json")
	f := At(path)
	if got := f.Last("build"); got != 0 {
		t.Errorf("a step that never ran took %s", got)
	}
	f.Record("build", 3*time.Second)
	f.Record("start", time.Second)
	f.Record("build", 4*time.Second)
	f.Record("build", 0) // it is no duration
	if build, start := At(path).Last("build"), At(path).Last("start"); build != 4*time.Second || start != time.Second {
		t.Errorf("build took %s and start %s, want 4s and 1s", build, start)
	}
	if err := os.WriteFile(path, []byte("{damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := f.Last("build"); got != 0 {
		t.Errorf("a damaged file has a duration of %s", got)
	}
	f.Record("build", time.Second)
	if got := f.Last("build"); got != time.Second {
		t.Errorf("after a damaged file, build took %s", got)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %d files, want one: %v", len(entries), err)
	}
	File{}.Record("build", time.Second)
	if got := (File{}).Last("build"); got != 0 {
		t.Errorf("no file has a duration of %s", got)
	}
}

func TestFileStaysSmall(t *testing.T) {
	t.Parallel()
	f := At(filepath.Join(t.TempDir(), "durations.json"))
	for i := range maxSteps + 10 {
		f.Record(strconv.Itoa(i), time.Second)
	}
	if n := len(f.read()); n > maxSteps {
		t.Errorf("the file has %d steps, more than %d", n, maxSteps)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durations.json")
	At(path).Record("tidy", 4500*time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuilder
		stop := At(path).Show(console.New(&out, "yare"), "tidy", "running go mod tidy")
		time.Sleep(1500 * time.Millisecond)
		stop()
		stop()
		if want := "yare: running go mod tidy (1.0s, last time 4.5s)\n"; out.String() != want {
			t.Errorf("it shows %q, want %q", out.String(), want)
		}
	})
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(data)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
