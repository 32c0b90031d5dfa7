package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
	"github.com/yare-go/yare/operator/internal/problems"
)

// line is a line of a log in JSON.
type line struct {
	Level, Msg, Stream, Error string
	Times                     int
}

// linesOf returns the lines of a log that are no details.
func linesOf(t *testing.T, log string) (lines []line) {
	t.Helper()
	for text := range strings.Lines(log) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Level != "DEBUG" {
			lines = append(lines, l)
		}
	}
	return lines
}

// A restored server was logged as an object that cannot be processed.
func TestRestoredServerIsNoErrorOfOneObject(t *testing.T) {
	t.Parallel()
	var log sharedBuffer
	r := problems.NewStreamReporter(slog.New(slog.NewJSONHandler(&log, nil)), func(error) bool { return false })
	r.RecordError(wire.Stream{}, &cache.RestorationError{Err: errors.New("the server is at resource version 5, and has been at 9")})
	lines := linesOf(t, log.String())
	if len(lines) != 1 || lines[0].Msg != "the server does not show what it has shown before" || !strings.Contains(lines[0].Error, "has been at 9") {
		t.Errorf("logged: %+v", lines)
	}
}

// A program whose lists failed for good logged nothing at all.
func TestFailingListsAreLogged(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 422, 429, 500, 503} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log sharedBuffer
				var works atomic.Bool
				server := gadgetServer{open: make(chan struct{})}
				close(server.open)
				h := wire.HandlerFunc(func(ctx context.Context, r *wire.Request) (*wire.Response, error) {
					if works.Load() {
						return server.Do(ctx, r)
					}
					return nil, &wire.Error{Verb: r.Verb, Ref: r.Ref(), Code: code, Answer: metav1.Status{
						Code: int32(code), Message: fmt.Sprintf("conversion webhook failed at %s", time.Now())}}
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				part := controller.New(func(context.Context, *gadget, *kube.Client) (controller.Action, error) {
					return controller.Done(), nil
				})
				go func() {
					ended <- runParts(ctx, kube.NewClientFromHandler(h), environment{log: slog.New(newLogHandler(&log, slog.LevelDebug))}, []Part{part})
				}()
				time.Sleep(30 * time.Second)
				synctest.Wait()
				lines := linesOf(t, log.String())
				if len(lines) == 0 || !strings.Contains(lines[0].Error, "conversion webhook failed") || lines[0].Stream != "gadgets.example.com" {
					t.Fatalf("after half a minute of failures the log has %+v", lines)
				}
				// It does not flood the log.
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				if lines := linesOf(t, log.String()); len(lines) > 20 || lines[len(lines)-1].Times < 100 {
					t.Errorf("after a day of failures the log has %d lines, the last of them %+v", len(lines), lines[len(lines)-1])
				}
				before := len(linesOf(t, log.String()))
				works.Store(true)
				time.Sleep(time.Minute + 2*time.Second)
				synctest.Wait()
				after := linesOf(t, log.String())[before:]
				if len(after) != 2 || after[0].Msg != "the stream works again" || after[1].Msg != "the objects are in the cache" {
					t.Errorf("after it recovered the log has %+v", after)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What the reporter logs of one stream, in order.
func TestStreamReporter(t *testing.T) {
	t.Parallel()
	resource, err := kube.ResourceOf[gadget]()
	if err != nil {
		t.Fatal(err)
	}
	s := wire.Stream{Resource: resource}
	cut := &wire.Error{Verb: wire.VerbWatch, Err: errors.New("connection reset by peer")}
	rbac := refused(`gadgets is forbidden: User "x" cannot list resource "gadgets" in API group "" at the cluster scope`)
	proxy := refused("the proxy says no")
	type step = func(*problems.StreamReporter, *problems.Reporter)
	fails := func(n int, err error) step {
		return func(r *problems.StreamReporter, _ *problems.Reporter) {
			for range n {
				r.RecordError(s, err)
			}
		}
	}
	recovers := func(r *problems.StreamReporter, _ *problems.Reporter) { r.RecordRecovery(s) }
	goesAway := func(_ *problems.StreamReporter, reporter *problems.Reporter) {
		failing := wire.HandlerFunc(func(context.Context, *wire.Request) (*wire.Response, error) { return nil, cut })
		_, _ = reporter.Handler(failing).Do(t.Context(), &wire.Request{Verb: wire.VerbList, Resource: resource})
	}
	undecodable := &wire.DecodeError{Err: errors.New("it has no name")}
	panicked := errors.New(`gadgets.example.com: default/a: the index "x": panic: at the disco`)
	for name, c := range map[string]struct {
		steps []step
		want  []string
	}{
		"one failure":          {[]step{fails(1, answer(500, "a"))}, []string{"fails a"}},
		"the same again":       {[]step{fails(9, answer(500, "a"))}, []string{"fails a", "fails a 2", "fails a 4", "fails a 8"}},
		"another":              {[]step{fails(3, answer(500, "a")), fails(1, answer(500, "b"))}, []string{"fails a", "fails a 2", "fails b 4"}},
		"only other numbers":   {[]step{fails(1, answer(500, "port 1")), fails(2, answer(500, "port 2"))}, []string{"fails port 1", "fails port 2 2"}},
		"two in turns":         {[]step{fails(1, answer(500, "a")), fails(1, answer(500, "b")), fails(1, answer(500, "a")), fails(1, answer(500, "b")), fails(1, answer(500, "a"))}, []string{"fails a", "fails b 2", "fails a 3", "fails b 4"}},
		"recovery":             {[]step{fails(1, answer(500, "a")), recovers, fails(1, answer(500, "a"))}, []string{"fails a", "works", "fails a"}},
		"a cut connection":     {[]step{fails(2, cut), recovers}, nil},
		"always cut":           {[]step{fails(4, cut), recovers}, []string{"fails connection reset by peer 3", "fails connection reset by peer 4", "works"}},
		"the server is away":   {[]step{goesAway, fails(20, cut), recovers}, []string{"away"}},
		"a missing permission": {[]step{fails(5, rbac)}, nil},
		"another refusal":      {[]step{fails(1, proxy)}, []string{"fails the proxy says no"}},
		"unreadable objects":   {[]step{fails(3, undecodable)}, []string{"object it has no name", "object it has no name 2"}},
		"a panicking index":    {[]step{fails(1, panicked)}, []string{"object gadgets.example.com: default/a: the index \"x\": panic: at the disco"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log sharedBuffer
			logger := slog.New(newLogHandler(&log, slog.LevelDebug))
			reporter := problems.NewReporter(logger, "", "", kube.Needs{}, nil)
			r := problems.NewStreamReporter(logger, reporter.HasReported)
			for _, step := range c.steps {
				step(r, reporter)
			}
			lines := linesOf(t, log.String())
			if len(lines) != len(c.want) {
				t.Fatalf("%d lines, not %q: %+v", len(lines), c.want, lines)
			}
			headlines := map[string]string{
				"fails": "the stream fails; will try again", "works": "the stream works again",
				"away": "the server cannot be reached; will try again", "object": "an object cannot be processed",
			}
			for i, want := range c.want {
				headline, text, _ := strings.Cut(want, " ")
				got, _, _ := strings.Cut(lines[i].Error, " (")
				if lines[i].Times > 0 {
					got += fmt.Sprintf(" %d", lines[i].Times)
				}
				if lines[i].Msg != headlines[headline] || headline != "away" && !strings.HasSuffix(got, text) {
					t.Errorf("line %d is %+v, not %s", i, lines[i], want)
				}
			}
		})
	}
}

// Objects that cannot be processed are logged again when there were none for a while.
func TestObjectErrorsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log sharedBuffer
		r := problems.NewStreamReporter(slog.New(slog.NewJSONHandler(&log, nil)), func(error) bool { return false })
		for range 100 {
			r.RecordError(wire.Stream{}, &wire.DecodeError{Err: errors.New("it has no name")})
		}
		before := len(linesOf(t, log.String()))
		time.Sleep(time.Hour)
		r.RecordError(wire.Stream{}, &wire.DecodeError{Err: errors.New("it has no name")})
		if after := len(linesOf(t, log.String())) - before; before > 10 || after != 1 {
			t.Errorf("%d lines for a hundred objects, then %d for one", before, after)
		}
	})
}
