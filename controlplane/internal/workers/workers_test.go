package workers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A key comes again after an error, after a conflict, which is not reported, and when its handling asks for that.
func TestKeysComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil)
		results := []error{errors.New("the server is away"), conflict, nil, nil}
		var times, reported []time.Duration
		started := time.Now()
		w := &Workers{
			Count: 2,
			Sync: func(context.Context, string) (time.Duration, error) {
				times = append(times, time.Since(started))
				err := results[len(times)-1]
				if len(times) == 3 {
					return time.Minute, err
				}
				return 0, err
			},
			Report: func(context.Context, string, error) { reported = append(reported, time.Since(started)) },
		}
		w.Init(time.Second)
		w.queue.Add("default/a")
		ended := make(chan struct{})
		go func() { defer close(ended); w.Run(ctx) }()
		time.Sleep(time.Hour)
		cancel()
		<-ended
		if want := []time.Duration{0, time.Second, 3 * time.Second, 63 * time.Second}; !slices.Equal(times, want) {
			t.Errorf("it was handled at %v, want %v", times, want)
		}
		if want := []time.Duration{0}; !slices.Equal(reported, want) {
			t.Errorf("failures were reported at %v, want %v", reported, want)
		}
	})
}
