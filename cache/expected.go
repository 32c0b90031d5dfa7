package cache

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
	"github.com/yare-go/yare/kube"
)

// expectedVersion is a version of an object that the server has answered a request with, and that
// a stream has not reached yet.
type expectedVersion struct {
	key      kube.Key
	version  string
	answered time.Time
	// listCount is how many lists the stream had begun before the answer.
	listCount uint64
}

// expectedVersions are the versions that one stream is expected to show. A watch shows the changes of
// its objects one by one, in the order of their versions. A watch that passes an expected version
// without showing the object proves that the server was restored from a backup: the write is lost.
type expectedVersions struct {
	mu sync.Mutex
	// versions are in ascending order, and newer than the store.
	versions []expectedVersion
	// listCount is how many lists the stream has begun.
	listCount uint64
}

// maxExpected limits the versions that a stream is expected to show. Versions beyond the limit are
// ignored: the loss of the versions before them is found all the same.
const maxExpected = 1024

// expect records that s is expected to show a value of the overlay.
func (s *stream) expect(k overlay.Key, e overlay.Entry) {
	if e.Kind != overlay.Value || !s.isExpected(e.Labels) {
		return
	}
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.versions) >= maxExpected || !ident.IsNewer(e.Version, s.store.Version()) {
		return
	}
	i := len(x.versions)
	for i > 0 && ident.IsNewer(x.versions[i-1].version, e.Version) {
		i--
	}
	if i > 0 && x.versions[i-1].version == e.Version {
		return // a write that changed nothing, or a read
	}
	x.versions = slices.Insert(x.versions, i, expectedVersion{
		key: k.In(), version: e.Version, answered: time.Now(), listCount: x.listCount,
	})
}

// expect records that the streams of an object are expected to show a value of the overlay.
func (c *Cache) expect(k overlay.Key, e overlay.Entry) {
	for _, s := range c.snapshot() {
		if s.mayHold(k) {
			s.expect(k, e)
		}
	}
}

// advance records that all changes up to version are in the store. The change at version is of the
// object under key, which is empty for a bookmark.
func (s *stream) advance(version string, key kube.Key) {
	if s.listing {
		return
	}
	before := s.store.Version()
	for _, e := range s.passExpected(version) {
		isShown := e.version == version && e.key.Namespace == key.Namespace && e.key.Name == key.Name
		if !isShown && s.lostSince == "" {
			s.lostSince = before
			s.recordLost(e)
			s.contradict()
		}
	}
}

// passExpected advances the store to version, and removes and returns the versions up to it that
// were expected.
func (s *stream) passExpected(version string) []expectedVersion {
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	s.writer.Advance(version)
	n := 0
	for n < len(x.versions) && ident.HasReached(version, x.versions[n].version) {
		n++
	}
	if n == 0 {
		return nil
	}
	passed := slices.Clone(x.versions[:n])
	x.versions = slices.Delete(x.versions, 0, n)
	return passed
}

// checkOverdue asks for a list if a version has been expected since before the current watch was
// opened, and the watch has not shown the version for longer than a change needs. A restored server
// whose own versions are lower sends nothing that passes the version.
func (s *stream) checkOverdue() {
	if s.lostSince != "" || time.Since(s.watchOpened) > overlay.MaxAge && s.hasExpectedSince(s.watchOpened) {
		s.contradict()
	}
}

// hasExpectedSince reports whether a version is expected that was answered before t.
func (s *stream) hasExpectedSince(t time.Time) bool {
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.versions, func(e expectedVersion) bool {
		return e.answered.Before(t)
	})
}

// beginExpectations records that the stream begins a list.
func (s *stream) beginExpectations() {
	s.expected.mu.Lock()
	defer s.expected.mu.Unlock()
	s.expected.listCount++
}

// hasLostExpected reports whether the list at version, which the stream began last, lacks a version
// that was expected before the list began.
func (s *stream) hasLostExpected(version string) (lost expectedVersion, has bool) {
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.versions, func(e expectedVersion) bool {
		return e.listCount < x.listCount && ident.IsNewer(e.version, version)
	})
	if i < 0 {
		return expectedVersion{}, false
	}
	return x.versions[i], true
}

// recordLost records the error that an expected version is lost.
func (s *stream) recordLost(e expectedVersion) {
	s.errors.Add(1)
	s.failed = append(s.failed, fmt.Errorf("the server has lost resource version %s of %s, which it had answered a request with, as after a restored backup: everything is listed again", e.version, e.key))
}

// completeList advances the store to the version of a complete list, and removes what the list was
// expected to show. It reports whether the store is complete for the first time.
func (s *stream) completeList(version string) (first bool) {
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	x.versions = slices.DeleteFunc(x.versions, func(e expectedVersion) bool {
		return e.listCount < x.listCount || ident.HasReached(version, e.version)
	})
	return s.writer.Complete(version)
}

// forgetExpected forgets all expected versions.
func (s *stream) forgetExpected() {
	s.expected.mu.Lock()
	defer s.expected.mu.Unlock()
	s.expected.versions = nil
}

// isExpected reports whether the stream has to show an object with these labels, which are JSON. Only the
// server can evaluate selectors of fields.
func (s *stream) isExpected(objectLabels string) bool {
	if s.id.FieldSelector != "" || s.id.ShardSelector != "" {
		return false
	}
	if s.id.LabelSelector == "" {
		return true
	}
	selector, err := labels.Parse(s.id.LabelSelector)
	if err != nil {
		return false
	}
	set := labels.Set{}
	if objectLabels != "" && kube.Unmarshal([]byte(objectLabels), &set) != nil {
		return false
	}
	return selector.Matches(set)
}
