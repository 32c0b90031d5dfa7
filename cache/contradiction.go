package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
)

// shownVersion is the version of an object that a store showed before a request.
type shownVersion struct {
	stream  *stream
	uid     types.UID
	version string
}

// shownVersions returns the versions of an object that stores show.
func (c *Cache) shownVersions(k overlay.Key) (shown []shownVersion) {
	for _, s := range c.snapshot() {
		if !s.mayHold(k) {
			continue
		}
		if o, ok := s.store.Get(k.In()); ok {
			shown = append(shown, shownVersion{s, o.UID, o.ResourceVersion})
		}
	}
	return shown
}

// checkAnswer compares the answer of a server to a request with what stores showed before the
// request. An answer is never older, unless the server was restored from a backup: then the stores
// are of the past that was lost. They are not read until they are listed again, which happens at
// once. Without that a program could read the lost past and the present in turn, and undo its own
// writes again and again, until the watch has found the restoration.
func checkAnswer(shown []shownVersion, uid types.UID, version string) {
	for _, v := range shown {
		if v.uid == uid && ident.IsNewer(v.version, version) {
			v.stream.contradict()
		}
	}
}

// minContradictionInterval is the least time between two lists because of contradictions. A server
// that answers from caches of its own contradicts itself for ever.
const minContradictionInterval = time.Minute

// contradiction is what a stream knows of answers that contradict its store.
type contradiction struct {
	count uint64
	// listed is the count when the last complete list began.
	listed uint64
	last   time.Time
}

// contradict records that the server has answered with an older state than the store shows.
func (s *stream) contradict() {
	s.contradictionMu.Lock()
	defer s.contradictionMu.Unlock()
	if !s.contradiction.last.IsZero() && time.Since(s.contradiction.last) < minContradictionInterval {
		return
	}
	s.contradiction.count++
	s.contradiction.last = time.Now()
	s.relister.Relist()
}

// contradictions returns how many contradictions there have been.
func (s *stream) contradictions() uint64 {
	s.contradictionMu.Lock()
	defer s.contradictionMu.Unlock()
	return s.contradiction.count
}

// settleContradictions records that a list is complete that began after n contradictions.
func (s *stream) settleContradictions(n uint64) {
	s.contradictionMu.Lock()
	defer s.contradictionMu.Unlock()
	s.contradiction.listed = n
}

// isContradicted reports whether the store has been contradicted since the last complete list
// began.
func (s *stream) isContradicted() bool {
	s.contradictionMu.Lock()
	defer s.contradictionMu.Unlock()
	return s.contradiction.count > s.contradiction.listed
}
