package operator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/yaretest"
)

// load is what users do while a test changes something.
type load struct {
	t       *testing.T
	callers int
	// call makes the call n of a caller.
	call    func(ctx context.Context, caller, n int) error
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	calls    int
	last     time.Time // when the last call began
	failures []loadFailure
}

// loadFailure is a call that has failed.
type loadFailure struct {
	// began and at are when the call began and ended.
	began, at time.Time
	err       error
	// hasAnswer is false for an error of the load itself: its call has no answer of the API server.
	hasAnswer bool
}

// callPause returns how long a caller pauses after a call. The small forms of schedules call less often: what they check
// needs calls all the time, and not many of them.
func callPause() time.Duration {
	if os.Getenv("YARE_WEBHOOK_FULL") != "" || os.Getenv("YARE_VERSIONS_FULL") != "" {
		return 20 * time.Millisecond
	}
	return 100 * time.Millisecond
}

// startLoad starts callers, each of which makes calls until [load.end]. Each second one pauses for a second after a call,
// and the others for [callPause].
func startLoad(t *testing.T, callers int, call func(ctx context.Context, caller, n int) error) *load {
	t.Helper()
	l := &load{t: t, callers: callers, call: call}
	l.start()
	return l
}

// start starts the callers.
func (l *load) start() {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	l.cancel = cancel
	for caller := range l.callers {
		pause := callPause()
		if caller%2 == 1 {
			pause = time.Second
		}
		l.running.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				l.record(began, l.call(context.WithoutCancel(ctx), caller, n))
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	l.t.Cleanup(func() { cancel(); l.running.Wait() })
}

// record records how a call ended that began at a time.
func (l *load) record(began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.last = began
	if err != nil {
		e, isError := kube.AsError(err)
		l.failures = append(l.failures, loadFailure{began, time.Now(), err, isError && e.Code != 0})
	}
}

// count returns the number of calls so far.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// waitForCalls waits until n calls have ended, the last of which began after a time.
func (l *load) waitForCalls(n int, after time.Time) {
	l.t.Helper()
	seen := -1
	yaretest.Eventually(l.t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if seen < 0 && l.last.After(after) {
			seen = l.calls
		}
		if seen < 0 || l.calls < seen+n {
			return errors.New("there are no calls")
		}
		return nil
	})
}

// end ends the calls, and returns those that have failed. It fails the test if there were none at all, and for errors of
// the load itself.
func (l *load) end() []loadFailure {
	l.t.Helper()
	l.cancel()
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.failures {
		if !f.hasAnswer {
			l.t.Errorf("an error of the load itself, and of no webhook: %v", f.err)
		}
	}
	l.t.Logf("%d calls, %d have failed", l.calls, len(l.failures))
	if l.calls == 0 {
		l.t.Error("there were no calls")
	}
	return l.failures
}

// mustNotFail ends the calls. It fails the test for each call that has failed.
func (l *load) mustNotFail() {
	l.t.Helper()
	var text strings.Builder
	failures := l.end()
	for _, f := range failures[:min(10, len(failures))] {
		fmt.Fprintf(&text, "\n%s %v", f.at.Format(time.StampMilli), f.err)
	}
	if len(failures) > 0 {
		l.t.Errorf("%d calls have failed:%s", len(failures), text.String())
	}
}
