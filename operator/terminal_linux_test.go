package operator

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// openTerminal opens a pair of pseudo-terminals. The first reads what is written to the
// second.
func openTerminal(t *testing.T) (reader, terminal *os.File) {
	t.Helper()
	reader, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { reader.Close() })
	unlock, number := 0, 0
	for request, value := range map[uintptr]*int{syscall.TIOCSPTLCK: &unlock, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, reader.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Skipf("this machine gives no terminal: %v", errno)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminal: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return reader, terminal
}

// On a terminal the log is text for people, in colours unless NO_COLOR is set.
func TestLogForPeople(t *testing.T) {
	for value, coloured := range map[string]bool{"": true, "1": false} {
		t.Setenv("NO_COLOR", value)
		reader, terminal := openTerminal(t)
		slog.New(newLogHandler(terminal, slog.LevelInfo)).Info("hello there", "n", 7)
		text := make([]byte, 4096)
		n, err := reader.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		line := string(text[:n])
		if strings.Contains(line, "\x1b[") != coloured || strings.HasPrefix(line, "{") || !strings.Contains(line, "hello there") {
			t.Errorf("with NO_COLOR=%q: %q", value, line)
		}
	}
}

// On a terminal the stack of a panic stands on lines of its own.
func TestStackForPeople(t *testing.T) {
	reader, terminal := openTerminal(t)
	slog.New(newLogHandler(terminal, slog.LevelInfo)).With("controller", "x").Error("it panicked", "stack", "goroutine 7 [running]:\nmain.f()\n\t/main.go:42", "at", "/main.go:42")
	text := make([]byte, 4096)
	all := ""
	for !strings.Contains(all, "main.go:42\r\n") || !strings.Contains(all, "goroutine") {
		n, err := reader.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text[:n])
	}
	if lines := strings.Split(all, "\r\n"); len(lines) != 5 || strings.Contains(lines[0], "goroutine") || strings.TrimSpace(lines[1]) != "goroutine 7 [running]:" || strings.TrimSpace(lines[3]) != "/main.go:42" {
		t.Errorf("logged: %q", lines)
	}
}

// On a terminal uninstall asks, and goes on after yes alone.
func TestConfirmationOnATerminal(t *testing.T) {
	for answer, want := range map[string]string{"yes\n": "", "no\n": "the answer is not yes", "\n": "the answer is not yes"} {
		keyboard, terminal := openTerminal(t)
		if _, err := keyboard.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var out sharedBuffer
		err := prompt{in: terminal, out: &out, timeout: time.Minute}.confirm(t.Context())
		if (err == nil) != (want == "") || err != nil && err.Error() != want || out.String() != "type yes to go on: " {
			t.Errorf("after %q: %v; %s", answer, err, out.String())
		}
	}
	_, terminal := openTerminal(t)
	if err := (prompt{in: terminal, out: io.Discard, timeout: time.Millisecond}).confirm(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("without an answer: %v", err)
	}
	if err := (prompt{out: io.Discard, timeout: time.Minute}).confirm(t.Context()); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without a terminal: %v", err)
	}
}
