package yaretest

import (
	"encoding/json"
	"testing"
)

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
