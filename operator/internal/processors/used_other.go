//go:build !unix

package processors

import "time"

// usedTime returns false: this system does not report how much processor time a program has used.
func usedTime() (used time.Duration, isKnown bool) { return 0, false }
