package processors

import (
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/fstest"
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
			used.Add(int64(work))
			time.Sleep(wait)
			synctest.Wait()
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
		step(500*time.Millisecond, 100*time.Millisecond) // waits for its server
		step(600*time.Millisecond, 900*time.Millisecond) // 1 s in the first second
		step(time.Second, 600*time.Millisecond)          // between calm and busy
		step(time.Second, 400*time.Millisecond, "one")
		step(time.Hour, time.Second)
		step(30*time.Millisecond, 30*time.Millisecond)            // too short a time to decide
		step(30*time.Millisecond, 27*time.Millisecond, "default") // 0.95 of 60 ms

		// A program that rests has no collection. The timer finds that it is calm.
		time.Sleep(2 * calmPeriod)
		synctest.Wait()
		step(0, 0, "one")

		step(time.Second, time.Second, "default")
		a.end()
		step(time.Hour, 0, "default") // by the end itself
		step(time.Second, 10*time.Second)
	})
}

// Not parallel: GOMAXPROCS is the process's.
func TestCalmProgramHasOneProcessor(t *testing.T) {
	usual := usualProcessors(t)
	t.Setenv("GOMAXPROCS", "")
	end := Adapt()
	defer end()
	waitForOne(t)
	end()
	if got := runtime.GOMAXPROCS(0); got != usual {
		t.Errorf("after the end there are %d processors, want %d", got, usual)
	}
}

// A busy program collects garbage, and each collection is followed by a check. The used time is that of a program that
// has a processor for itself: the test can share its processors with other programs, and is never that busy then.
//
// Not parallel: GOMAXPROCS is the process's.
func TestBusyProgramHasAllProcessors(t *testing.T) {
	usualProcessors(t)
	var isBusy atomic.Bool
	var used time.Duration // the adapter's lock guards used and before
	before := time.Now()
	a := &adapter{
		now: time.Now, used: func() time.Duration {
			now := time.Now()
			if isBusy.Load() {
				used += now.Sub(before)
			}
			before = now
			return used
		},
		setOne: func() { runtime.GOMAXPROCS(1) }, setDefault: runtime.SetDefaultGOMAXPROCS,
	}
	a.start()
	defer a.end()
	a.checkAfterCollection()
	waitForOne(t)
	isBusy.Store(true)
	for deadline := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) == 1; {
		runtime.KeepAlive(make([]byte, 1<<20))
		if time.Now().After(deadline) {
			t.Fatal("a busy program has one processor after a minute")
		}
	}
	isBusy.Store(false)
	waitForOne(t)
}

// usualProcessors returns the usual number of processors. It skips the test where a program has one for good.
func usualProcessors(t *testing.T) (usual int) {
	t.Helper()
	runtime.SetDefaultGOMAXPROCS()
	usual = runtime.GOMAXPROCS(0)
	if millis, ok := processorLimit(os.DirFS("/")); usual == 1 || ok && millis <= 1000 {
		t.Skip("this machine has one processor")
	}
	return usual
}

// waitForOne waits until GOMAXPROCS is one.
func waitForOne(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != 1; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a calm program has %d processors after a minute", runtime.GOMAXPROCS(0))
		}
	}
}

func TestUsedTimeGrowsWithWork(t *testing.T) {
	t.Parallel()
	before, isKnown := usedTime()
	if !isKnown {
		return // a system without the figure
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if used, _ := usedTime(); used-before >= 20*time.Millisecond {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a minute of work used no processor time")
		}
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

func TestProcessorLimitOfControlGroups(t *testing.T) {
	t.Parallel()
	const mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" +
		"32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
	for name, test := range map[string]struct {
		memberships string
		files       map[string]string
		want        int64
	}{
		"version 2":           {"0::/pod\n", map[string]string{"pod/cpu.max": "25000 100000\n"}, 250},
		"version 2, no limit": {"0::/pod\n", map[string]string{"pod/cpu.max": "max 100000\n"}, 0},
		"the group around":    {"0::/a/b\n", map[string]string{"a/b/cpu.max": "max 100000\n", "a/cpu.max": "200000 100000\n"}, 2000},
		"version 1": {
			"4:cpu,cpuacct:/pod\n", map[string]string{"cpu/pod/cpu.cfs_quota_us": "10000\n", "cpu/pod/cpu.cfs_period_us": "100000\n"}, 100,
		},
		"version 1, no limit": {
			"4:cpu,cpuacct:/pod\n", map[string]string{"cpu/pod/cpu.cfs_quota_us": "-1\n", "cpu/pod/cpu.cfs_period_us": "100000\n"}, 0,
		},
		"not a number": {"0::/pod\n", map[string]string{"pod/cpu.max": "much\n"}, 0},
		"no file":      {"0::/pod\n", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := fstest.MapFS{
				"proc/self/cgroup": {Data: []byte(test.memberships)}, "proc/self/mountinfo": {Data: []byte(mounts)},
			}
			for name, text := range test.files {
				root["sys/fs/cgroup/"+name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got, ok := processorLimit(root); got != test.want || ok != (test.want > 0) {
				t.Errorf("the limit is %d, %t, want %d", got, ok, test.want)
			}
		})
	}
}
