package lease

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// realTime returns the clock of a bubble.
func realTime() Clock {
	start := time.Now()
	return func() Reading { return at(time.Since(start)) }
}

// endpoint is a transport with a settable answer.
type endpoint struct {
	answer func(ctx context.Context, r *wire.Request) error
	// timeouts holds the parameter timeout of each request.
	timeouts []string
}

func (e *endpoint) Do(ctx context.Context, r *wire.Request) (*wire.Response, error) {
	e.timeouts = append(e.timeouts, r.Query.Get("timeout"))
	if e.answer != nil {
		if err := e.answer(ctx, r); err != nil {
			return nil, err
		}
	}
	return &wire.Response{Code: 200}, nil
}

func write() *wire.Request {
	return &wire.Request{Verb: wire.VerbPatch, Query: url.Values{"fieldManager": {"me"}}}
}

// Before the term everything passes. During the term each write has a timeout, and needs a second.
// After the deadline nothing passes, whatever comes.
func TestFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := new(endpoint)
		f := NewFence(realTime(), DefaultTiming())
		h := f.Handler(server)
		send := func(r *wire.Request) error { _, err := h.Do(t.Context(), r); return err }
		check := func(what string, wantWrite, wantRead error) {
			t.Helper()
			if err := send(write()); !errors.Is(err, wantWrite) {
				t.Errorf("%s: the error of a write is %v", what, err)
			}
			if err := send(&wire.Request{Verb: wire.VerbWatch}); !errors.Is(err, wantRead) {
				t.Errorf("%s: the error of a watch is %v", what, err)
			}
			if isOpen := f.term.isOpen(); isOpen != (wantRead == nil) {
				t.Errorf("%s: connections are open: %t", what, isOpen)
			}
		}
		check("before the term", nil, nil)
		time.Sleep(time.Hour)
		check("long before the term", nil, nil)
		if len(server.timeouts) != 4 || server.timeouts[0] != "" {
			t.Errorf("timeouts before the term: %q", server.timeouts)
		}

		sent := f.term.clock()
		time.Sleep(3 * time.Second)
		if !f.term.extend(sent) {
			t.Fatal("the term does not begin")
		}
		server.timeouts = nil
		r := write()
		if err := send(r); err != nil {
			t.Fatal(err)
		}
		short := write()
		short.Query.Set("timeout", "2s")
		if err := send(short); err != nil {
			t.Fatal(err)
		}
		if err := send(&wire.Request{Verb: wire.VerbDelete}); err != nil {
			t.Fatal(err)
		}
		if got := server.timeouts; len(got) != 3 || got[0] != "17000ms" || got[1] != "2s" || got[2] != "17000ms" || r.Query.Has("timeout") {
			t.Errorf("timeouts in the term: %q", got)
		}
		time.Sleep(16001 * time.Millisecond)
		check("at the end of the term", errLittleLeft, nil)
		if !f.term.extend(f.term.clock()) {
			t.Error("a renewal in time does not extend the term")
		}
		check("after the renewal", nil, nil)
		time.Sleep(20 * time.Second)
		check("after the deadline", ErrOver, ErrOver)
		if f.term.extend(f.term.clock()) || f.term.release(t.Context()) {
			t.Error("the term goes on after its deadline")
		}
		check("after a late renewal", ErrOver, ErrOver)
	})
}

// A write ends at the deadline. A term whose writes may still be carried out is not released.
func TestOpenWrites(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer     func(ctx context.Context, r *wire.Request) error
		pause      time.Duration // before the release, with renewals
		isReleased bool
	}{
		"answered": {func(context.Context, *wire.Request) error { return nil }, 0, true},
		"refused": {func(_ context.Context, r *wire.Request) error {
			return &wire.Error{Verb: r.Verb, Code: 409}
		}, 0, true},
		"unknown": {func(_ context.Context, r *wire.Request) error {
			return &wire.Error{Verb: r.Verb, Unknown: true}
		}, 0, false},
		"unknown and long ago": {func(_ context.Context, r *wire.Request) error {
			return &wire.Error{Verb: r.Verb, Unknown: true}
		}, 32 * time.Second, true},
		"lost":      {func(context.Context, *wire.Request) error { return io.ErrUnexpectedEOF }, 0, false},
		"under way": {func(ctx context.Context, _ *wire.Request) error { <-ctx.Done(); return context.Cause(ctx) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := NewFence(realTime(), DefaultTiming())
				h := f.Handler(&endpoint{answer: test.answer})
				f.term.extend(f.term.clock())
				started := time.Now()
				ended := make(chan error, 1)
				go func() {
					_, err := h.Do(context.Background(), write())
					ended <- err
				}()
				synctest.Wait()
				for ; test.pause > 0; test.pause -= 4 * time.Second {
					time.Sleep(4 * time.Second)
					f.term.extend(f.term.clock())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if got := f.term.release(ctx); got != test.isReleased {
					t.Errorf("released: %t", got)
				}
				if err := f.term.check(); !errors.Is(err, ErrOver) {
					t.Errorf("after the release: %v", err)
				}
				if err := <-ended; name == "under way" && (!isTimeout(err) || time.Since(started) != 20*time.Second) {
					t.Errorf("the write ended after %s with %v", time.Since(started), err)
				}
			})
		})
	}
}

// isTimeout reports whether err is that of a write that the fence has ended.
func isTimeout(err error) bool {
	_, is := errors.AsType[writeTimeoutError](err)
	return is
}

// A write that has no answer within its bound is counted, and its error names what may be the cause and the flag
// that helps. It makes no difference whether this process or the server ends it first.
func TestWriteThatTheFenceEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer  func(ctx context.Context, r *wire.Request) error
		isEnded bool
	}{
		"by this process": {func(ctx context.Context, r *wire.Request) error {
			<-ctx.Done()
			return &wire.Error{Verb: r.Verb, Unknown: true, Err: context.Cause(ctx)}
		}, true},
		"by the server": {func(_ context.Context, r *wire.Request) error {
			time.Sleep(15998 * time.Millisecond)
			return &wire.Error{Verb: r.Verb, Unknown: true, Code: 504}
		}, true},
		"by a webhook within its time": {func(_ context.Context, r *wire.Request) error {
			time.Sleep(10 * time.Second)
			return &wire.Error{Verb: r.Verb, Unknown: true, Code: 500}
		}, false},
		"after a webhook is ignored": {func(context.Context, *wire.Request) error {
			time.Sleep(10100 * time.Millisecond)
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := NewFence(realTime(), DefaultTiming())
				h := f.Handler(&endpoint{answer: test.answer})
				f.term.extend(f.term.clock())
				time.Sleep(DefaultTiming().Period)
				_, err := h.Do(t.Context(), write())
				if isTimeout(err) != test.isEnded || f.TimedOutWrites() > 0 != test.isEnded {
					t.Errorf("%d writes were ended, with the error %v", f.TimedOutWrites(), err)
				}
				if test.isEnded {
					if !kube.IsUnknown(err) {
						t.Errorf("the error is not that of a write that may have been carried out: %v", err)
					}
					for _, want := range []string{"within the 16s", "webhook", "--lease-duration"} {
						if !strings.Contains(err.Error(), want) {
							t.Errorf("the error does not have %q: %v", want, err)
						}
					}
				}
			})
		})
	}
}

// The end of a program cancels its requests. A write goes on all the same, so that its answer is known
// and the lease can be released.
func TestCanceledWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := NewFence(realTime(), DefaultTiming())
		h := f.Handler(&endpoint{answer: func(context.Context, *wire.Request) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		}})
		f.term.extend(f.term.clock())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := h.Do(ctx, write()); !errors.Is(err, context.DeadlineExceeded) || !kube.IsUnknown(err) {
			t.Errorf("the error of the write is %v", err)
		}
		began := time.Now()
		if isReleased := f.term.release(t.Context()); !isReleased || time.Since(began) != 200*time.Millisecond {
			t.Errorf("released: %t, after %s", isReleased, time.Since(began))
		}
	})
}

// A process that is stopped between the check of a request and its sending sends nothing afterwards.
func TestConnectionsAfterTheDeadline(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	passed := time.Duration(0)
	f := NewFence(func() Reading { return at(passed) }, DefaultTiming())
	c, err := f.Dialer(nil)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	send := func() error { _, err := c.Write([]byte("x")); return err }
	if err := send(); err != nil {
		t.Error(err)
	}
	f.term.extend(f.term.clock())
	if err := send(); err != nil {
		t.Error(err)
	}
	passed = 20 * time.Second
	if err := send(); !errors.Is(err, ErrOver) {
		t.Errorf("after the deadline: %v", err)
	}
	// The end of the connection is a reset, so that the kernel keeps nothing to deliver later.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(server)
	if err == nil || len(got) > 2 {
		t.Errorf("the server got %q, %v", got, err)
	}
}
