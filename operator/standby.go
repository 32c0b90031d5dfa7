package operator

import (
	"context"

	"github.com/yare-go/yare/controller"
)

// Standby is a part that starts on every replica of a program with leader election, before the replica leads.
// All other parts but a [Service] start when their replica leads. A controller is a Standby. It syncs its
// streams before the election, so that an elected replica goes on at once. It reconciles only after
// [controller.Runtime.Elected] is closed. A Standby of an author's own waits for
// [controller.Runtime.WaitElected] before it does what one replica alone may do. See [OnEveryReplica] for
// parts that all replicas may run.
type Standby interface {
	Part
	// Standby marks a part. It does nothing.
	Standby()
}

// OnEveryReplica returns a part that runs part on every replica from the start on, whether the replica leads
// or not. One example is a [Task] that serves requests. Another example is a controller that only fills its
// own cache. All replicas write what the part writes. A [Service] runs on every replica without
// OnEveryReplica.
func OnEveryReplica(part Part) Part {
	if part == nil {
		return nil // the program reports it
	}
	if service, ok := part.(Service); ok {
		return service
	}
	return everyReplica{part}
}

type everyReplica struct{ Part }

func (everyReplica) Standby() {}

// Start starts the part as in a program without leader election.
func (e everyReplica) Start(ctx context.Context, rt *controller.Runtime) error {
	own := *rt
	own.Elected = nil
	return e.Part.Start(ctx, &own)
}
