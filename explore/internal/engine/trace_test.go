package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yare-go/yare/explore/internal/finding"
)

// The events of watches in a trace are few enough to be read.
func TestTraceLimitsEventsOfWatches(t *testing.T) {
	t.Parallel()
	watch := func(step int, text string) finding.Event {
		return finding.Event{Step: step, Lane: finding.Server, To: finding.Operator, Text: text}
	}
	write := finding.Event{Lane: finding.Operator, To: finding.Server, Text: "patch"}
	events := []finding.Event{watch(0, "a"), watch(0, "a"), watch(0, "a"), write, watch(0, "a")}
	for i := range maxWatchEvents {
		events = append(events, watch(0, fmt.Sprint(i)))
	}
	events = append(events, write, watch(1, "b"))
	got := limitWatchEvents(events)
	want := []finding.Event{watch(0, "a (3 times)"), write, watch(0, "a")}
	for i := range maxWatchEvents - 2 {
		want = append(want, watch(0, fmt.Sprint(i)))
	}
	want = append(want, write, watch(0, "2 more events of watches"), watch(1, "b"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the trace (-want +got):\n%s", diff)
	}
}
