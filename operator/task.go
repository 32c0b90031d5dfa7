package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/yare-go/yare/controller"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
)

// Task returns a part that runs a function in the background, such as a report once an hour or a
// server of one's own. The function starts together with the other parts of the program, with
// --leader-elect when the replica leads, and may return whenever it is done. Its error ends the program.
// After a signal its context ends, and the program waits for the function to return. Lines of
// [controller.Log], and of the Log of the Runtime that run gets, have the name of the task.
// [controller.Runtime.CachedClient] returns a client that reads from the cache.
//
// A Task belongs to no kind, and declares its requests by permissions:
//
//	operator.Task("report", report, controller.Reads[corev1.Node](wire.VerbList))
//
// A function that follows the objects of a kind is a [Watcher]. Its program defines the kind.
func Task(
	name string, run func(ctx context.Context, rt *controller.Runtime) error, permissions ...controller.Permission,
) Part {
	var needs kube.Needs
	errs := []error{addPermissions(&needs, permissions)}
	if name == "" {
		errs = append(errs, errors.New("the name of a task is empty: give operator.Task one for the log"))
	}
	if run == nil {
		errs = append(errs, fmt.Errorf("the function of the task %q is nil", name))
	}
	start := func(ctx context.Context, rt *controller.Runtime) error {
		own := *rt
		ctx = logctx.With(ctx, rt.Log, slog.String("task", name))
		own.Log = controller.Log(ctx)
		if err := run(ctx, &own); err != nil {
			return fmt.Errorf("the task %s: %w", name, err)
		}
		return nil
	}
	return functionPart{needs: needs, err: errors.Join(errs...), start: start}
}
