package explore

import (
	"slices"
	"time"

	"github.com/yare-go/yare/internal/proxy"
)

// silence returns the longest time in which nothing happened within a step.
func (o *outcome) silence() (longest time.Duration) {
	for step := range o.states {
		var times []time.Time
		for _, v := range o.history.Versions {
			if v.Step == step && v.Resource != proxy.Leases {
				times = append(times, v.At)
			}
		}
		for _, r := range o.requests {
			if r.Point.Step == step && isPoint(r) {
				times = append(times, r.Began)
			}
		}
		slices.SortFunc(times, time.Time.Compare)
		for i := 1; i < len(times); i++ {
			longest = max(longest, times[i].Sub(times[i-1]))
		}
	}
	return longest
}
