package progress

import (
	"slices"
	"testing"

	"github.com/yare-go/yare/internal/follow"
)

// A stream is reported to work again once: at the first sign of the end of the reason for
// its last error, and not at a watch that the server may end with the same error.
func TestRecovery(t *testing.T) {
	t.Parallel()
	const failure = follow.ChangeType(-1)
	const (
		added, listStarted, listed = follow.ChangeAdded, follow.ChangeListStarted, follow.ChangeListed
		bookmark, opened, ended    = follow.ChangeBookmark, follow.ChangeWatchOpened, follow.ChangeWatchEnded
	)
	for name, c := range map[string]struct {
		steps []follow.ChangeType
		// recovered are the steps, by their number, with which the stream works again.
		recovered []int
	}{
		"no error":                 {[]follow.ChangeType{listStarted, added, listed, opened, added, ended, opened}, nil},
		"a list that was refused":  {[]follow.ChangeType{listStarted, failure, listStarted, failure, listStarted, added, listed, opened}, []int{6}},
		"a watch that was refused": {[]follow.ChangeType{opened, ended, failure, failure, opened, added}, []int{4}},
		"an error within a watch":  {[]follow.ChangeType{opened, ended, failure, opened, ended, failure, opened, bookmark, added}, []int{7}},
		"a clean end in between":   {[]follow.ChangeType{opened, ended, failure, opened, ended, opened, added}, []int{6}},
		"twice":                    {[]follow.ChangeType{failure, opened, ended, failure, opened, added}, []int{1, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Recovery
			var recovered []int
			for i, step := range c.steps {
				if step == failure {
					r.RecordError()
				} else if r.RecordChange(step) {
					recovered = append(recovered, i)
				}
			}
			if !slices.Equal(recovered, c.recovered) {
				t.Errorf("it works again at %v, not at %v", recovered, c.recovered)
			}
		})
	}
}
