package engine

import (
	"bytes"
	"os"
	"strconv"
)

// loadMeter measures how busy the processors of the machine are.
type loadMeter struct{ total, idle uint64 }

// measure returns the part of the time for which the processors were busy since the last call. It
// reports false if the system does not show the load. See proc_stat(5).
func (m *loadMeter) measure() (busy float64, ok bool) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 6 || string(fields[0]) != "cpu" {
		return 0, false
	}
	var total, idle uint64
	for i, field := range fields[1:min(len(fields), 9)] { // the time of guests is part of another field
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0, false
		}
		total += n
		if i == 3 || i == 4 { // idle, and waiting for a disk
			idle += n
		}
	}
	before := *m
	*m = loadMeter{total, idle}
	if total <= before.total || before.total == 0 {
		return 1, true
	}
	return 1 - float64(idle-before.idle)/float64(total-before.total), true
}
