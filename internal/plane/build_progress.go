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

	mu sync.Mutex
	// partial is the beginning of a line whose end has not come.
	partial []byte
	// downloadCount, compiledCount and packageCount are numbers of modules, of packages so far, and of all packages.
	downloadCount, compiledCount, packageCount int
	// activity is what the go command does at present.
	activity string
	// problems holds the lines that report what went wrong.
	problems []string
}

func newBuildProgress(module Module, task *console.Task, started time.Time, last time.Duration) *buildProgress {
	p := &buildProgress{
		module: module, task: task, started: started, last: last, ended: make(chan struct{}),
		activity: "looking at its packages",
	}
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

// stop ends the display. It may be called more than once.
func (p *buildProgress) stop() {
	p.end.Do(func() { close(p.ended) })
	p.ticking.Wait()
}

// setPackageCount records the number of packages of the build, which is 0 before.
func (p *buildProgress) setPackageCount(count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packageCount = count
}

// show shows the progress so far.
func (p *buildProgress) show() {
	p.mu.Lock()
	text := p.activity
	switch {
	case p.compiledCount > 0 && p.packageCount > 0:
		text = fmt.Sprintf("package %d of at most %d: %s", p.compiledCount, p.packageCount, p.activity)
	case p.compiledCount > 0:
		text = fmt.Sprintf("package %d: %s", p.compiledCount, p.activity)
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
		p.readLineLocked(string(line))
		p.partial = rest
	}
}

// readLineLocked counts a download or a package, or keeps a problem.
func (p *buildProgress) readLineLocked(line string) {
	module, isDownload := strings.CutPrefix(line, "go: downloading ")
	switch {
	case isDownload:
		p.downloadCount++
		p.activity = fmt.Sprintf("downloading module %d: %s", p.downloadCount, module)
	case line != "" && !strings.ContainsAny(line, " \t:#"):
		p.compiledCount++
		p.activity = line
		if line == p.module.modulePath() {
			p.activity = "linking it"
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
