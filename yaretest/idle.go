package yaretest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// settled is how long nothing may have happened before a program counts as at rest.
const settled = time.Second

// AtRest waits until, for a second, no request but watches has been made, and nothing has
// been reconciled but what had been asked for with controller.RequeueAfter. Then it fails t
// if one of these happens within d. Reconciles are those that programs log, which must run
// with -v; without programs, requests alone count.
func (p *Proxy) RequireIdle(t testing.TB, d time.Duration, programs ...*Process) {
	t.Helper()
	unasked, since := 0, time.Now()
	Eventually(t, func() error {
		last, asked := p.journal.lastButWatches()
		if time.Since(asked) < settled {
			return fmt.Errorf("it does not come to rest: the last request was %s", last)
		}
		calls := unaskedCalls(t, programs)
		if len(calls) != unasked {
			unasked, since = len(calls), time.Now()
		}
		if len(calls) > 0 && time.Since(since) < settled {
			return fmt.Errorf("it does not come to rest: the last reconcile was %s", calls[len(calls)-1])
		}
		return nil
	})
	before := p.journal.butWatches()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test ended before its program had been at rest")
	}
	if more := p.journal.butWatches(); len(more) > len(before) {
		t.Errorf("at rest for %s, it made %d requests besides its watches:", d, len(more)-len(before))
		for _, r := range more[len(before):] {
			t.Errorf("  %s", r)
		}
	}
	if calls := unaskedCalls(t, programs); len(calls) > unasked {
		t.Errorf("at rest for %s, it reconciled %d times without having asked for it:", d, len(calls)-unasked)
		for _, call := range calls[unasked:] {
			t.Errorf("  %s", call)
		}
	}
}

// unaskedCalls are the log lines of reconciles that something else led to than a requeue.
func unaskedCalls(t testing.TB, programs []*Process) (calls []string) {
	t.Helper()
	for _, program := range programs {
		told := false
		for _, line := range program.Log() {
			var call struct {
				Cause *string `json:"cause"`
				Took  string  `json:"took"`
			}
			if json.Unmarshal([]byte(line), &call) != nil || call.Cause == nil || call.Took == "" {
				continue
			}
			told = true
			if *call.Cause != "requeue" {
				calls = append(calls, line)
			}
		}
		if !told {
			t.Fatalf("%s has logged no reconcile: run it with -v, and let it have something to do", filepath.Base(program.cmd.Path))
		}
	}
	return calls
}
