package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
)

// recordFile is the file with the events of the session.
const recordFile = "session.jsonl"

const (
	columns   = 100
	paneCount = 2
)

// paneRows returns the numbers of lines of the terminals.
func paneRows() [paneCount]int { return [paneCount]int{16, 13} }

// event is what one of the terminals received, or a pause for the reader.
type event struct {
	// Seconds is the time since the begin of the session.
	Seconds float64 `json:"seconds"`
	// Pane is the number of the terminal, and Text is what the terminal received.
	Pane int    `json:"pane"`
	Text string `json:"text,omitempty"`
	// Hold is how many seconds the reader gets to read. It is 0 for an event with a text.
	Hold float64 `json:"hold,omitempty"`
}

// recording is a session that runs.
type recording struct {
	started time.Time
	shells  [paneCount]*os.File
	// reading has the goroutines that read the terminals.
	reading sync.WaitGroup

	mu     sync.Mutex
	events []event
	// received is all that each terminal received.
	received [paneCount]strings.Builder
}

// record clones the repository into the folder demo of the temporary folder, runs the session there in two real
// terminals, and writes the events to a file. It removes the folder.
func record(ctx context.Context, file string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	demo := filepath.Join(os.TempDir(), "demo")
	if err := os.Mkdir(demo, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(demo)) }()
	clone := filepath.Join(demo, "yare")
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	// The second command compiles yare and the control plane, so that the session has the times of a second run.
	for _, command := range [][]string{
		{"git", "clone", "--quiet", "--depth=1", "file://" + root, clone},
		{"go", "-C", clone, "run", "./cmd/yare", "kubectl", "version", "--client"},
		{"go", "-C", clone, "build", "-o", os.DevNull, "./examples/webapp"},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull) // no control plane of another project is meant
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	r := &recording{started: time.Now()}
	err = r.play(ctx, clone, filepath.Join(demo, "web-app"))
	r.end()
	if err != nil {
		return fmt.Errorf("%w\nthe terminals received:\n%s\n%s", err, r.received[0].String(), r.received[1].String())
	}
	return r.write(file)
}

// play types the commands of the session, and waits for their results.
func (r *recording) play(ctx context.Context, clone, project string) error {
	const prompt = "$ "
	steps := []struct {
		pane  int
		typed string
		// waited is what the terminal waitedPane receives then.
		waitedPane int
		waited     string
		// seconds is a wait before the next step, and hold is how long the reader gets.
		seconds, hold float64
	}{
		{0, "go run ./cmd/yare new ../web-app", 0, prompt, 0, 1.5},
		{0, "cd ../web-app && cp ../yare/docs/guide/code/first/* .   # the operator of README", 0, prompt, 0, 0.5},
		{0, "go tool yare dev .", 0, "patch deployments.apps", 2, 1.5},
		{1, "go tool yare kubectl get webapps,deployments", 1, prompt, 0, 1.5},
		{1, "sed -i 's/replicas: 3/replicas: 5/' sample.yaml", 0, "patch deployments.apps", 2, 1},
		{1, "go tool yare kubectl get deployments", 1, prompt, 0, 1.2},
		{1, "go tool yare kubectl delete deployment hello", 0, "patch deployments.apps", 2, 1},
		{1, "go tool yare kubectl get deployments", 1, prompt, 0, 0},
	}
	folders := [paneCount]string{clone, project}
	for _, s := range steps {
		if r.shells[s.pane] == nil {
			if err := r.open(s.pane, folders[s.pane]); err != nil {
				return err
			}
			if err := r.wait(ctx, s.pane, 0, prompt); err != nil {
				return err
			}
		}
		from := r.receivedLength(s.waitedPane)
		if s.waitedPane == s.pane {
			from += len(s.typed)
		}
		for _, char := range s.typed {
			if _, err := r.shells[s.pane].WriteString(string(char)); err != nil {
				return err
			}
			time.Sleep(12 * time.Millisecond)
		}
		if _, err := r.shells[s.pane].WriteString("\n"); err != nil {
			return err
		}
		if err := r.wait(ctx, s.waitedPane, from, s.waited); err != nil {
			return fmt.Errorf("after %q: %w", s.typed, err)
		}
		if s.waitedPane != s.pane { // the shell has its prompt again
			if err := r.waitForEnd(ctx, s.pane, prompt); err != nil {
				return fmt.Errorf("after %q: %w", s.typed, err)
			}
		}
		time.Sleep(time.Duration(s.seconds * float64(time.Second)))
		r.add(event{Pane: s.pane, Hold: s.hold})
	}
	return nil
}

// open starts a shell in a terminal of its own.
func (r *recording) open(pane int, folder string) error {
	cmd := exec.Command("sh")
	cmd.Dir = folder
	for _, variable := range os.Environ() {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "KUBECONFIG", "NO_COLOR", "TERM", "PS1", "ENV", "PWD", "GOFLAGS", "GOWORK":
		default:
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "PS1=$ ", "TERM=xterm-256color")
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(paneRows()[pane]), Cols: columns})
	if err != nil {
		return err
	}
	r.shells[pane] = file
	r.reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := file.Read(buffer)
			if n > 0 {
				r.add(event{Pane: pane, Text: string(buffer[:n])})
			}
			if err != nil {
				_ = cmd.Wait()
				return
			}
		}
	})
	return nil
}

// add records an event that happens now.
func (r *recording) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Seconds = time.Since(r.started).Seconds()
	r.events = append(r.events, e)
	r.received[e.Pane].WriteString(e.Text)
}

func (r *recording) receivedLength(pane int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received[pane].Len()
}

// wait waits until a terminal has received a text after the first bytes.
func (r *recording) wait(ctx context.Context, pane, from int, text string) error {
	return r.waitUntil(ctx, text, func() bool {
		received := r.received[pane].String()
		return strings.Contains(withoutEscapes(received[min(from, len(received)):]), text)
	})
}

// withoutEscapes returns a text without its escape sequences.
func withoutEscapes(text string) string {
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '\x1b')
		if i < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		n := escapeLength(text[i:])
		if n == 0 {
			break // the rest of the sequence has not come yet
		}
		text = text[i+n:]
	}
	return b.String()
}

// waitForEnd waits until a text is the last that a terminal has received.
func (r *recording) waitForEnd(ctx context.Context, pane int, text string) error {
	return r.waitUntil(ctx, text, func() bool { return strings.HasSuffix(r.received[pane].String(), text) })
}

func (r *recording) waitUntil(ctx context.Context, text string, isReceived func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute,
		fmt.Errorf("the terminal did not receive %q within 3 minutes", text))
	defer cancel()
	for {
		r.mu.Lock()
		found := isReceived()
		r.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// end ends yare dev by Ctrl-C and the shells by the end of their input, and waits for them. What they write then is not
// part of the session.
func (r *recording) end() {
	r.mu.Lock()
	count := len(r.events)
	r.mu.Unlock()
	for _, shell := range r.shells {
		if shell != nil {
			_, _ = shell.WriteString("\x03")
		}
	}
	for pane, shell := range r.shells {
		if shell == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_ = r.waitForEnd(ctx, pane, "$ ")
		cancel()
		_, _ = shell.WriteString("\x04")
	}
	r.reading.Wait()
	for _, shell := range r.shells {
		if shell != nil {
			_ = shell.Close()
		}
	}
	r.events = r.events[:count]
}

// write writes the events to a file, one in a line.
func (r *recording) write(file string) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, e := range r.events {
		if err := encoder.Encode(e); err != nil {
			return err
		}
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
