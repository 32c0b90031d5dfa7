package operator

import (
	"context"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/kube"
)

// OnEveryReplica returns a part that runs part on every replica from the start on, whether the replica leads
// or not. One example is a [Task] that serves requests. Another example is a controller that only fills its
// own cache. All replicas write what the part writes. A part with
// EveryReplica in its [kube.Needs] starts on every replica too, and waits for [controller.Runtime.WaitElected] before
// it does what one replica alone may do.
func OnEveryReplica(part Part) Part {
	if part == nil {
		return nil // the program reports it
	}
	return everyReplica{part}
}

type everyReplica struct{ Part }

// Needs returns the needs of the part, which runs on every replica.
func (e everyReplica) Needs() (kube.Needs, error) {
	needs, err := e.Part.Needs()
	needs.EveryReplica = true
	return needs, err
}

// Unwrap returns the part, so that the program finds what it is.
func (e everyReplica) Unwrap() Part { return e.Part }

// Start starts the part as in a program without leader election.
func (e everyReplica) Start(ctx context.Context, rt *controller.Runtime) error {
	own := *rt
	own.Elected = nil
	return e.Part.Start(ctx, &own)
}
