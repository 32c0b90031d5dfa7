package restoration

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// expectedVersion is a version of an object that the server has answered a request with.
type expectedVersion struct {
	key      kube.Key
	version  string
	answered time.Time
	// listCount is the number of lists that the stream had begun before the answer.
	listCount uint64
}

// lossError returns the error that the server has lost the version.
func (e expectedVersion) lossError() error {
	return fmt.Errorf("the server has lost resource version %s of %s, which it had answered a request with",
		e.version, e.key)
}

// expectedVersions are the versions that a stream is expected to show. A watch shows the changes of its
// objects one by one, in the order of their versions. All methods can be used concurrently.
type expectedVersions struct {
	mu sync.Mutex
	// versions are in ascending order, and newer than reached.
	versions []expectedVersion
	// reached is the version that the stream has reached. It is empty before the first list.
	reached string
	// hasAdvanced is true if the watch has moved reached since the last restoration was recorded.
	hasAdvanced bool
	// listCount is the number of lists that the stream has begun.
	listCount uint64
}

// maxExpected limits the versions that a stream is expected to show. Later versions are ignored. The loss
// of an earlier version is found all the same.
const maxExpected = 1024

// add adds a version of an object, unless the stream has reached it.
func (x *expectedVersions) add(k kube.Key, version string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.versions) >= maxExpected || !ident.IsNewer(version, x.reached) {
		return
	}
	i := len(x.versions)
	for i > 0 && ident.IsNewer(x.versions[i-1].version, version) {
		i--
	}
	if i > 0 && x.versions[i-1].version == version {
		return // a write that changed nothing, or a read
	}
	x.versions = slices.Insert(x.versions, i, expectedVersion{
		key: k, version: version, answered: time.Now(), listCount: x.listCount,
	})
}

// advance records that a watch has reached version. It removes and returns the expected versions up to
// version.
func (x *expectedVersions) advance(version string) (passed []expectedVersion) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if version == "" || ident.IsNewer(x.reached, version) {
		return nil
	}
	x.hasAdvanced = x.hasAdvanced || version != x.reached
	x.reached = version
	n := 0
	for n < len(x.versions) && ident.HasReached(version, x.versions[n].version) {
		n++
	}
	if n == 0 {
		return nil
	}
	passed = slices.Clone(x.versions[:n])
	x.versions = slices.Delete(x.versions, 0, n)
	return passed
}

// beginList records that a list begins.
func (x *expectedVersions) beginList() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.listCount++
}

// lostBy returns a version that was expected before the current list began. The current list has the version
// list, and does not reach the returned version.
func (x *expectedVersions) lostBy(list string) (lost expectedVersion, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.versions, func(e expectedVersion) bool {
		return e.listCount < x.listCount && ident.IsNewer(e.version, list)
	})
	if i < 0 {
		return expectedVersion{}, false
	}
	return x.versions[i], true
}

// endList records that the current list is complete at version. It removes the versions that the list had to
// show.
func (x *expectedVersions) endList(version string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.reached = version
	x.versions = slices.DeleteFunc(x.versions, func(e expectedVersion) bool {
		return e.listCount < x.listCount || ident.HasReached(version, e.version)
	})
}

// olderThan returns a version that was answered before t.
func (x *expectedVersions) olderThan(t time.Time) (older expectedVersion, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.versions, func(e expectedVersion) bool { return e.answered.Before(t) })
	if i < 0 {
		return expectedVersion{}, false
	}
	return x.versions[i], true
}

// forget removes all versions.
func (x *expectedVersions) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.versions = nil
}

// recordRestoration removes all versions, because a restoration was found.
func (x *expectedVersions) recordRestoration() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.versions, x.hasAdvanced = nil, false
}

// reachedVersion returns the version that the stream has reached.
func (x *expectedVersions) reachedVersion() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reached
}

// hasLostSinceRestoration reports whether the server has lost, by the current list at version list, a version that it
// sent after the last restoration was recorded.
func (x *expectedVersions) hasLostSinceRestoration(list string) bool {
	if _, ok := x.lostBy(list); ok {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.hasAdvanced && ident.IsNewer(x.reached, list)
}
