package cache

import "sync/atomic"

// leaseGroup is the group of Leases.
const leaseGroup = "coordination.k8s.io"

// term is what the streams know of the term of this process: see [TermVersion]. Its methods can be used concurrently.
type term struct {
	// begin returns the resource version at which the term began. It may be nil.
	begin func() string
	// voidVersion is the version of the term during which the server was restored from a backup, or nil.
	voidVersion atomic.Pointer[string]
}

// version returns the resource version that a stream must have reached to show all writes of former leaders. It is empty if
// nothing is to be reached.
//
// Example: the term begins at version 200. The server is restored from a backup of version 100. The streams list the restored
// server, which has undone the later writes of former leaders. No stream waits for version 200 any more.
func (t *term) version() string {
	if t.begin == nil {
		return ""
	}
	version := t.begin()
	if void := t.voidVersion.Load(); void != nil && *void == version {
		return ""
	}
	return version
}

// recordRestoration records that the server was restored from a backup. The resource versions of the restored server are not
// comparable with the version of the term.
func (t *term) recordRestoration() {
	if t.begin == nil {
		return
	}
	version := t.begin()
	t.voidVersion.Store(&version)
}
