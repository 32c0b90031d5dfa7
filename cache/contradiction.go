package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/yare-go/yare/cache/internal/overlay"
	"github.com/yare-go/yare/internal/ident"
)

// shownVersion is what a store showed of an object before a request.
type shownVersion struct {
	stream *stream
	// uid and version are the uid and the version of the object. They are empty if the store showed
	// no object.
	uid     types.UID
	version string
	// reached is the resource version that the store had reached.
	reached string
}

// shownVersions returns what the stores of an object show of it.
func (c *Cache) shownVersions(k overlay.Key) (shown []shownVersion) {
	for _, s := range c.snapshot() {
		if !s.mayHold(k) {
			continue
		}
		o, _ := s.store.observe(k.In())
		shown = append(shown, shownVersion{s, o.UID, o.ResourceVersion, o.Version})
	}
	return shown
}

// checkAnswer compares the object that a server answered a request with, and what stores showed before
// the request. An answer is never older than what a store showed. It is never as old as the version that
// a store had reached, unless the store showed it. Otherwise the server was restored from a backup: the
// stores are of the past that was lost. They are not read until they are listed again, which happens at
// once. Without that a program could read the lost past and the present in turn, and undo its own writes
// again and again, until the watch has found the restoration.
func checkAnswer(shown []shownVersion, m answerMetadata) {
	for _, v := range shown {
		isOlder := v.uid == m.UID && ident.IsNewer(v.version, m.ResourceVersion)
		isMissing := ident.HasReached(v.reached, m.ResourceVersion) && v.version != m.ResourceVersion &&
			(v.version == "" || ident.IsNewer(m.ResourceVersion, v.version)) && v.stream.isExpected(string(m.Labels))
		if isOlder || isMissing {
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
