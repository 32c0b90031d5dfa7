package memory

import (
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync"
	"time"
)

const (
	// The program has read its objects when it allocates less than calmBytes in calmTime. Before that it has allocated
	// releasedBytes at least. Otherwise there is no memory to release.
	calmTime      = 2 * time.Second
	calmBytes     = 4 << 20
	releasedBytes = 16 << 20
)

// Release gives free memory back to the system once the program has read its objects for the first time.
// The runtime would need minutes. end ends the wait. For example, a program allocates 40 MB in the first four
// seconds, and 1 MB in the next two: then it has read its objects.
func Release() (end func()) {
	ending := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(calmTime)
		defer ticker.Stop()
		began := allocatedBytes()
		for before := began; ; {
			select {
			case <-ticker.C:
			case <-ending:
				return
			}
			now := allocatedBytes()
			if now-before < calmBytes && now-began > releasedBytes {
				debug.FreeOSMemory()
				return
			}
			before = now
		}
	})
	return func() {
		close(ending)
		running.Wait()
	}
}

// allocatedBytes returns how much the program has allocated on the heap so far.
func allocatedBytes() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
