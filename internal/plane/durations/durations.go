// Package durations records how long the slow steps of yare took, so that a later run can show how long a step will
// take.
package durations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
)

// maxSteps is how many steps the file has at most, because each folder of an operator has steps of its own.
const maxSteps = 200

// File is a file with the durations of the last runs of steps, by the names of the steps. The file only serves for what
// is shown, so its errors do not matter: a step whose duration cannot be read is unknown. The zero value has no file,
// and knows nothing.
type File struct{ path string }

// Default returns the file in yare's folder in the cache folder of the user.
func Default() File {
	folder, err := os.UserCacheDir()
	if err != nil {
		return File{}
	}
	return File{path: filepath.Join(folder, "yare", "durations.json")}
}

// At returns a file with another path.
func At(path string) File { return File{path: path} }

// Last returns how long a step took the last time, or 0 if that is unknown.
func (f File) Last(step string) time.Duration { return f.read()[step] }

// Record writes how long a step took. If two processes write at once, the duration of one of them is lost.
func (f File) Record(step string, took time.Duration) {
	if f.path == "" || took <= 0 {
		return
	}
	steps := f.read()
	if len(steps) >= maxSteps {
		steps = nil
	}
	if steps == nil {
		steps = make(map[string]time.Duration)
	}
	steps[step] = took
	content, err := json.Marshal(steps)
	if err != nil {
		return
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return
	}
	next, err := os.CreateTemp(filepath.Dir(f.path), "durations-")
	if err != nil {
		return
	}
	_, err = next.Write(content)
	if closeErr := next.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
}

func (f File) read() map[string]time.Duration {
	content, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	var steps map[string]time.Duration
	if json.Unmarshal(content, &steps) != nil {
		return nil
	}
	return steps
}

// Progress returns how long a step has taken so far, and how long it took the last time. Example: "2.0s, last time
// 4.5s".
func Progress(elapsed, last time.Duration) string {
	if last <= 0 {
		return console.Duration(elapsed)
	}
	return console.Duration(elapsed) + ", last time " + console.Duration(last)
}

// Show shows the progress of a step every second, as "running go mod tidy (2.0s, last time 4.5s)", until the returned
// function is called, which waits for the goroutine that shows the progress. The text is what the step does.
func (f File) Show(out *console.Console, step, text string) (stop func()) {
	started, last, task := time.Now(), f.Last(step), out.Task()
	ended := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				task.Set("%s (%s)", text, Progress(time.Since(started), last))
			}
		}
	})
	return sync.OnceFunc(func() {
		close(ended)
		ticking.Wait()
		task.Done()
	})
}
