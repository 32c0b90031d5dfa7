package lease

import (
	"errors"
	"testing"
	"time"
)

// A term passes through the times of the example in the comment of its type.
func TestTermOfTheExample(t *testing.T) {
	t.Parallel()
	var now time.Duration
	clock := func() Reading { return Reading{steady: now, running: now} }
	process := newTerm(clock, DefaultTiming())
	moveTo := func(seconds float64) { now = time.Duration(seconds * float64(time.Second)) }
	write := func() (time.Duration, error) {
		left, _, err := process.beginWrite()
		if err == nil {
			process.endWrite(nil)
		}
		return left, err
	}
	if left, err := write(); left != 0 || err != nil {
		t.Errorf("before the term a write may take %s, %v", left, err)
	}
	for _, renewal := range []struct{ sent, answered float64 }{{0, 0.3}, {4, 4.1}} {
		moveTo(renewal.sent)
		sent := clock()
		moveTo(renewal.answered)
		if !process.extend(sent) || !process.isValid() {
			t.Errorf("the renewal of %v s has come too late", renewal.sent)
		}
	}
	moveTo(20)
	if left, err := write(); left != 4*time.Second || err != nil {
		t.Errorf("at 20 s a write may take %s, %v", left, err)
	}
	moveTo(23.5)
	if _, err := write(); !errors.Is(err, errLittleLeft) {
		t.Errorf("at 23.5 s a write is answered with %v", err)
	}
	if err := process.check(); err != nil {
		t.Errorf("at 23.5 s a read is answered with %v", err)
	}
	moveTo(24)
	if process.isValid() || !process.isLost() {
		t.Error("the term is valid at its deadline")
	}
	if err := process.check(); !errors.Is(err, ErrOver) || process.isOpen() {
		t.Errorf("at 24 s a read is answered with %v, and bytes may leave: %t", err, process.isOpen())
	}
	if process.extend(clock()) || process.release(t.Context()) {
		t.Error("after its end the term can be extended or released")
	}
}
