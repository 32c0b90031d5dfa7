//go:build !unix

package serving

// hasUnreadBytes reports false: on this platform nobody looks for a request that arrives at the end.
func hasUnreadBytes(uintptr) bool { return false }
