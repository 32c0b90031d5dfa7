package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// serveChecked runs a program with readiness checks until the test ends.
func serveChecked(t *testing.T, log *sharedBuffer, checks map[string]func(context.Context) error) fmt.Stringer {
	t.Helper()
	pages, probes := anywhere(t), anywhere(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	env := environment{
		log: slog.New(slog.NewTextHandler(log, nil)), listeners: listeners{pages: pages, probes: probes}, ownChecks: checks,
	}
	go func() { ended <- runParts(ctx, noServer(), env, []Part{Watcher[gadget](idle)}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return probes.Addr()
}

// A program with a check that fails is not ready, and the answer names each check with its error. A panic is an error. The
// program goes on, and is ready again when the checks pass.
func TestReadinessChecks(t *testing.T) {
	t.Parallel()
	var isUp atomic.Bool
	var log sharedBuffer
	at := serveChecked(t, &log, map[string]func(context.Context) error{
		"database": func(context.Context) error {
			if isUp.Load() {
				return nil
			}
			return errors.New("the connection is refused")
		},
		"mirror": func(context.Context) error {
			if isUp.Load() {
				return nil
			}
			panic("at the disco")
		},
		"disk": func(context.Context) error { return nil },
	})
	code, text := ask(t, at, "/readyz")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if code != 503 || len(lines) != 2 || lines[0] != "the readiness check database fails: the connection is refused" ||
		!strings.HasPrefix(lines[1], "the readiness check mirror fails: it panicked: at the disco, at ") || !strings.Contains(lines[1], "readiness_check_test.go") {
		t.Errorf("while the checks fail: %d %s", code, text)
	}
	if code, text := ask(t, at, "/healthz"); code != 200 {
		t.Errorf("the health while the checks fail: %d %s", code, text)
	}
	ask(t, at, "/readyz")
	isUp.Store(true)
	if code, text := ask(t, at, "/readyz"); code != 200 || text != "ok\n" {
		t.Errorf("once the checks pass: %d %s", code, text)
	}
	checkText(t, "the log", log.String(), []string{
		`msg="a readiness check fails" check=database error="the connection is refused"`, `check=mirror error="it panicked`,
		`msg="a readiness check passes again" check=database`,
	})
	if n := strings.Count(log.String(), "a readiness check"); n != 4 {
		t.Errorf("%d lines, not one for each change: %s", n, log.String())
	}
}

// A program ends without a goroutine of a check that heeds its context.
func TestReadinessChecksEndWithTheProgram(t *testing.T) {
	t.Parallel()
	var log sharedBuffer
	listener := anywhere(t)
	began, hasReturned := make(chan struct{}), new(atomic.Bool)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	env := environment{
		log: slog.New(slog.NewTextHandler(&log, nil)), listeners: listeners{pages: listener},
		ownChecks: map[string]func(context.Context) error{"queue": func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			hasReturned.Store(true)
			return ctx.Err()
		}},
	}
	go func() { ended <- runParts(ctx, noServer(), env, []Part{Watcher[gadget](idle)}) }()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if response, err := http.Get("http://" + listener.Addr().String() + "/readyz"); err == nil {
			response.Body.Close()
		}
	}()
	<-began
	cancel()
	if err := <-ended; err != nil || !hasReturned.Load() {
		t.Errorf("the program ended with %v, and the check has returned: %t", err, hasReturned.Load())
	}
	<-asked
}
