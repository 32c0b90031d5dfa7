//go:build !linux

package engine

// loadMeter measures how busy the processors of the machine are, on other systems.
type loadMeter struct{}

// measure reports false: the system does not show the load.
func (m *loadMeter) measure() (busy float64, ok bool) { return 0, false }
