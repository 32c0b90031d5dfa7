//go:build !linux

package lease

// SystemClock returns the clock of the machine. A leader trusts the faster one of the monotonic clock
// and the wall clock.
func SystemClock() Clock { return twoClocks() }
