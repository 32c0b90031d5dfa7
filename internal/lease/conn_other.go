//go:build !linux

package lease

import (
	"net"
	"time"
)

// limitUndelivered does nothing: only Linux has such an option.
func limitUndelivered(*net.TCPConn, time.Duration) {}
