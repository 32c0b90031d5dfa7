package kube

import (
	"context"
	"errors"
	"io"
	"time"
)

// errNoAnswer ends a request whose server was silent for longer than its timeout.
var errNoAnswer = errors.New("the server did not answer in time")

// answerTimeout ends a request whose server is silent for some time: before the answer begins,
// or between two parts of it. A whole answer may take longer, because a large page
// over a slow line would otherwise never arrive. A nil answerTimeout does nothing.
type answerTimeout struct {
	timer    *time.Timer
	duration time.Duration
	// paused is the time that did not count.
	paused time.Duration
	// outer is the timeout of the request that this attempt is a part of, or nil.
	outer *answerTimeout
}

type answerTimeoutKey struct{}

// withAnswerTimeout returns a context that ends, with the cause errNoAnswer, when d has
// passed without a restart of the timeout. The caller must cancel the context.
func withAnswerTimeout(parent context.Context, d time.Duration) (context.Context, *answerTimeout, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	t := &answerTimeout{
		timer:    time.AfterFunc(d, func() { cancel(errNoAnswer) }),
		duration: d,
		outer:    answerTimeoutOf(parent),
	}
	return context.WithValue(ctx, answerTimeoutKey{}, t), t, func() {
		t.timer.Stop()
		cancel(nil)
	}
}

// answerTimeoutOf returns the innermost timeout of the request that ctx belongs to, or nil.
func answerTimeoutOf(ctx context.Context) *answerTimeout {
	t, _ := ctx.Value(answerTimeoutKey{}).(*answerTimeout)
	return t
}

// pause stops t and the timeouts around it while wait runs.
func (t *answerTimeout) pause(wait func()) {
	for each := t; each != nil; each = each.outer {
		each.timer.Stop()
	}
	began := time.Now()
	wait()
	waited := time.Since(began)
	for each := t; each != nil; each = each.outer {
		each.paused += waited
	}
	t.restart()
}

// restart starts t and the timeouts around it from their beginning.
func (t *answerTimeout) restart() {
	for ; t != nil; t = t.outer {
		t.timer.Reset(t.duration)
	}
}

// progressReader restarts a timeout with everything that it reads.
type progressReader struct {
	io.Reader
	timeout *answerTimeout
}

func (r progressReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.timeout.restart()
	}
	return n, err
}
