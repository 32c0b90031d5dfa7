//go:build unix

package serving

import "syscall"

// hasUnreadBytes reports whether a socket has bytes to read.
func hasUnreadBytes(fd uintptr) bool {
	n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == nil && n > 0
}
