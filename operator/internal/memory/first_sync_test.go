package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// percent returns GOGC.
func percent() int {
	set := debug.SetGCPercent(usualPercent)
	debug.SetGCPercent(set)
	return set
}

// releasedToSystem returns how much of the heap has been returned to the system.
func releasedToSystem() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Not parallel: the heap and GOGC are the process's.
func TestMemoryOfTheFirstSync(t *testing.T) {
	t.Setenv("GOGC", "")
	debug.SetGCPercent(usualPercent)
	s := BeginFirstSync()
	if got := percent(); got != firstSyncPercent {
		t.Errorf("GOGC is %d during the first sync, want %d", got, firstSyncPercent)
	}
	var objects [][]byte
	for range 64 {
		objects = append(objects, make([]byte, 1<<20))
	}
	before := releasedToSystem()
	runtime.KeepAlive(objects) // from here on they are garbage
	s.End()
	if after := releasedToSystem(); after < before+32<<20 {
		t.Errorf("after the first sync %d of 64 MB are released", (after-before)>>20)
	}
	if got := percent(); got != usualPercent {
		t.Errorf("GOGC is %d after the first sync, want %d", got, usualPercent)
	}
	debug.SetGCPercent(70)
	defer debug.SetGCPercent(usualPercent)
	s.End()
	if got := percent(); got != 70 {
		t.Errorf("the second end has changed GOGC to %d", got)
	}
}

// Not parallel: GOGC is the process's.
func TestGOGCOfTheUserWins(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(usualPercent))
	for name, set := range map[string]func(t *testing.T){
		"by the environment": func(t *testing.T) { t.Setenv("GOGC", "60"); debug.SetGCPercent(60) },
		"by the program":     func(t *testing.T) { t.Setenv("GOGC", ""); debug.SetGCPercent(60) },
	} {
		t.Run(name, func(t *testing.T) {
			set(t)
			s := BeginFirstSync()
			if got := percent(); got != 60 {
				t.Errorf("GOGC is %d during the first sync, want 60", got)
			}
			s.End()
			if got := percent(); got != 60 {
				t.Errorf("GOGC is %d after the first sync, want 60", got)
			}
		})
	}
}
