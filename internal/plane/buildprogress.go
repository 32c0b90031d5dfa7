package plane

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/plane/console"
	"github.com/yare-go/yare/internal/plane/durations"
)

// buildProgress reads the standard error of `go build -v` and shows the progress. It keeps the
// lines that are neither a package nor a download: they report what went wrong.
type buildProgress struct {
	module  Module
	task    *console.Task
	started time.Time
	// last is how long the last build took, or 0 if that is unknown.
	last    time.Duration
	ended   chan struct{}
	end     sync.Once
	ticking sync.WaitGroup

	mu         sync.Mutex
	partial    []byte
	downloaded int
	compiled   int
	packages   int
	now        string
	problems   []string
}

func newBuildProgress(module Module, task *console.Task, started time.Time, last time.Duration) *buildProgress {
	p := &buildProgress{module: module, task: task, started: started, last: last, ended: make(chan struct{}), now: "looking at its packages"}
	p.ticking.Go(p.tick)
	return p
}

// tick shows the elapsed time, also while the compiler is silent.
func (p *buildProgress) tick() {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		p.show()
		select {
		case <-p.ended:
			return
		case <-ticker.C:
		}
	}
}

func (p *buildProgress) stop() {
	p.end.Do(func() { close(p.ended) })
	p.ticking.Wait()
}

func (p *buildProgress) total(packages int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packages = packages
}

func (p *buildProgress) show() {
	p.mu.Lock()
	text := p.now
	switch {
	case p.compiled > 0 && p.packages > 0:
		text = fmt.Sprintf("package %d of at most %d: %s", p.compiled, p.packages, p.now)
	case p.compiled > 0:
		text = fmt.Sprintf("package %d: %s", p.compiled, p.now)
	}
	p.mu.Unlock()
	p.task.Set("compiling %s, once: %s, %s", p.module.Title, durations.Progress(time.Since(p.started), p.last), text)
}

// Write reads lines.
func (p *buildProgress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, data...)
	for {
		line, rest, ok := bytes.Cut(p.partial, []byte("\n"))
		if !ok {
			return len(data), nil
		}
		p.line(string(line))
		p.partial = rest
	}
}

func (p *buildProgress) line(line string) {
	what, isDownload := strings.CutPrefix(line, "go: downloading ")
	switch {
	case isDownload:
		p.downloaded++
		p.now = fmt.Sprintf("downloading module %d: %s", p.downloaded, what)
	case line != "" && !strings.ContainsAny(line, " \t:#"):
		p.compiled++
		p.now = line
		if line == p.module.modulePath() {
			p.now = "linking it"
		}
	case strings.TrimSpace(line) != "":
		p.problems = append(p.problems, line)
	}
}

// errorText returns the end of the go command's error messages.
func (p *buildProgress) errorText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems := p.problems
	if len(p.partial) > 0 {
		problems = append(problems, string(p.partial))
	}
	const most = 40
	if len(problems) > most {
		problems = append([]string{"…"}, problems[len(problems)-most:]...)
	}
	return strings.Join(problems, "\n")
}
