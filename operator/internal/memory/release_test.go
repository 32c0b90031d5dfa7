package memory

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// releasedToSystem returns how much of the heap has been returned to the system.
func releasedToSystem() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Not parallel: the heap is the process's.
func TestMemoryOfTheSyncIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := Release()
		defer end()
		var objects [][]byte
		for range 64 {
			objects = append(objects, make([]byte, 1<<20))
		}
		time.Sleep(calmTime + time.Millisecond)
		synctest.Wait()
		before := releasedToSystem()
		runtime.KeepAlive(objects) // from here on they are garbage
		time.Sleep(calmTime)
		synctest.Wait()
		if after := releasedToSystem(); after < before+32<<20 {
			t.Errorf("after the sync %d of 64 MB are released", (after-before)>>20)
		}
	})
}

// Not parallel: the heap is the process's.
func TestWaitForTheSyncEnds(t *testing.T) {
	synctest.Test(t, func(*testing.T) { Release()() })
}
