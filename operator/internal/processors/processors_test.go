package processors

import (
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The program of the example in the comment of Adapt.
func TestProcessorsByShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		settings := make(chan string, 10)
		a := &adapter{
			now: time.Now, used: func() time.Duration { return time.Duration(used.Load()) },
			setOne: func() { settings <- "one" }, setDefault: func() { settings <- "default" },
		}
		step := func(wait, work time.Duration, want ...string) {
			t.Helper()
			time.Sleep(wait)
			used.Add(int64(work))
			a.check()
			var set []string
			for len(settings) > 0 {
				set = append(set, <-settings)
			}
			if !slices.Equal(set, want) {
				t.Fatalf("after a wait of %s and work of %s the settings are %q, want %q", wait, work, set, want)
			}
		}
		a.start()
		step(0, 0, "one")
		step(30*time.Millisecond, 30*time.Millisecond)            // too short a time to decide
		step(30*time.Millisecond, 27*time.Millisecond, "default") // 0.95 of 60 ms
		step(900*time.Millisecond, 1500*time.Millisecond)
		step(100*time.Millisecond, 60*time.Millisecond)        // between calm and busy
		step(100*time.Millisecond, 20*time.Millisecond, "one") // calm
		step(time.Second, 500*time.Millisecond)                // not busy
		step(time.Second, 900*time.Millisecond, "default")

		// A program that rests has no collection. The timer finds that it is calm, and then ends.
		time.Sleep(2 * calmPeriod)
		synctest.Wait()
		step(0, 0, "one")

		step(time.Second, time.Second, "default")
		a.end()
		step(time.Second, 0, "default") // by the end itself
		time.Sleep(10 * calmPeriod)
		synctest.Wait()
		step(0, 0)
	})
}

// Not parallel: GOMAXPROCS is the process's.
func TestBusyProgramHasAllProcessors(t *testing.T) {
	runtime.SetDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	if usual == 1 {
		t.Skip("this machine has one processor")
	}
	t.Setenv("GOMAXPROCS", "")
	end := Adapt()
	defer end()
	if got := runtime.GOMAXPROCS(0); got != 1 {
		t.Errorf("a program that begins has %d processors, want 1", got)
	}
	var garbage []byte
	for deadline := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) == 1; {
		garbage = make([]byte, 1<<20)
		if time.Now().After(deadline) {
			t.Fatal("a busy program has one processor after a minute")
		}
	}
	runtime.KeepAlive(garbage)
	for deadline := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != 1; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a calm program has %d processors after a minute", runtime.GOMAXPROCS(0))
		}
	}
	end()
	if got := runtime.GOMAXPROCS(0); got != usual {
		t.Errorf("after the end there are %d processors, want %d", got, usual)
	}
}

// Not parallel: GOMAXPROCS is the process's.
func TestGOMAXPROCSOfTheUserWins(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	for name, variable := range map[string]string{"by the environment": "3", "by the program": ""} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMAXPROCS", variable)
			if variable == "" {
				_ = os.Unsetenv("GOMAXPROCS")
			}
			runtime.GOMAXPROCS(runtime.NumCPU() + 1)
			defer Adapt()()
			if got, want := runtime.GOMAXPROCS(0), runtime.NumCPU()+1; got != want {
				t.Errorf("the program has %d processors, want %d", got, want)
			}
		})
	}
}
