package yaretest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// settled is how long nothing may have happened before a program counts as idle.
const settled = time.Second

// RequireIdle waits until the programs are idle: for a second they have made no request but
// watches, and reconciled nothing but what they had requeued with controller.RequeueAfter. Then
// it fails t if such a request or reconcile happens within d. It finds reconciles in the logs of
// programs, which must run with -v. Without programs it looks at requests only.
func (p *Proxy) RequireIdle(t testing.TB, d time.Duration, programs ...*Process) {
	t.Helper()
	count, since := 0, time.Now()
	Eventually(t, func() error {
		last, asked := p.journal.lastButWatches()
		if time.Since(asked) < settled {
			return fmt.Errorf("it does not become idle: the last request was %s", last)
		}
		calls := unrequested(t, programs)
		if len(calls) != count {
			count, since = len(calls), time.Now()
		}
		if len(calls) > 0 && time.Since(since) < settled {
			return fmt.Errorf("it does not become idle: the last reconcile was %s", calls[len(calls)-1])
		}
		return nil
	})
	before := p.journal.butWatches()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test ended before its program had been idle")
	}
	if more := p.journal.butWatches(); len(more) > len(before) {
		t.Errorf("within %s it made %d requests besides its watches:", d, len(more)-len(before))
		for _, r := range more[len(before):] {
			t.Errorf("  %s", r)
		}
	}
	if calls := unrequested(t, programs); len(calls) > count {
		t.Errorf("within %s it reconciled %d times without a requeue:", d, len(calls)-count)
		for _, call := range calls[count:] {
			t.Errorf("  %s", call)
		}
	}
}

// unrequested returns the log lines of reconciles whose cause was not a requeue.
func unrequested(t testing.TB, programs []*Process) (reconciles []string) {
	t.Helper()
	for _, program := range programs {
		logged := false
		for _, line := range program.Log() {
			var entry struct {
				Cause *string  `json:"cause"`
				Took  *float64 `json:"took"` // in seconds
			}
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Cause == nil || entry.Took == nil {
				continue
			}
			logged = true
			if *entry.Cause != "requeue" {
				reconciles = append(reconciles, line)
			}
		}
		if !logged {
			t.Fatalf("%s has logged no reconcile: run it with -v, and let it have something to do", program.command)
		}
	}
	return reconciles
}
