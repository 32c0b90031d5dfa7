package configpublishing

import (
	"sync"
	"time"
)

// removalTime is how long API servers may call an entry after its removal. A call in flight lasts 30 s at most
// (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#timeouts), and an API
// server may see the removal some seconds late.
const removalTime = 40 * time.Second

// removedPaths are the paths of entries that a replica has seen in a configuration, and that were removed since. The
// zero value has none. All methods can be used concurrently.
//
// Example: a replica of an earlier release, which has no defaulter, replaces the last replica with one.
//
//	10:00:00  the replica reads the configuration, which has /default.crates.example.com/v1
//	10:00:20  an API server calls this path. No replica knows the path any more
//	10:00:21  the leader removes the entry. The path is among removedPaths
//	10:00:22  the API server calls the path again
//	10:01:01  the path is no longer among removedPaths
type removedPaths struct {
	mu sync.Mutex
	// present are the paths of the entries by their names, as they were last recorded.
	present map[string]string
	// removals are the times of the removals by path.
	removals map[string]time.Time
}

// record records the paths of all entries of a configuration by the names of the entries. An entry that gets another
// path is not removed: another version of the webhook judges the objects from then on.
func (r *removedPaths) record(paths map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.removals == nil {
		r.removals = make(map[string]time.Time)
	}
	now := time.Now()
	for name, path := range r.present {
		if _, isPresent := paths[name]; !isPresent {
			r.removals[path] = now
		}
	}
	for _, path := range paths {
		delete(r.removals, path)
	}
	r.present = paths
}

// forget removes all paths. A replica that may have missed a change does not know which entries are removed.
func (r *removedPaths) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.removals)
}

// contains reports whether a path was removed within the last removalTime.
func (r *removedPaths) contains(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	removed, ok := r.removals[path]
	return ok && time.Since(removed) < removalTime
}
