package controller

import (
	"context"
	"log/slog"

	"github.com/yare-go/yare/internal/cache"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/wire"
)

// Runtime is what the parts of one program share.
type Runtime struct {
	// Client reaches the server, without any cache.
	Client *kube.Client
	// Cache holds the streams of all parts.
	Cache *cache.Cache
	// Log receives results and errors, and the lines of [Log].
	Log *slog.Logger
	// Observer receives the stats and results of the controllers. It may be nil.
	Observer Observer
	// Events records an event for an object that has failed for three minutes, or whose reconcile does not return. It may
	// be nil. Package operator sets it to the first recorder of package events among the parts of the program. The note is
	// a format as in package fmt for args.
	Events interface {
		Warning(obj kube.Object, reason, action, note string, args ...any)
	}
	// Tracer records a span for each reconcile and cleanup. It may be nil. With package operator it
	// records the requests of Client too.
	Tracer wire.Tracer
	// Namespace is the namespace of the program: the value of the environment variable POD_NAMESPACE
	// (https://kubernetes.io/docs/concepts/workloads/pods/downward-api/); else, in a Pod, the
	// namespace of its ServiceAccount; else the namespace of the kubeconfig's context, or default. It
	// is empty in a program of operator.Run, which loads no configuration. In a test, yaretest.RunParts
	// sets it. [Namespace] returns it in a reconcile.
	Namespace string
	// Pod is the name of the program's Pod: the value of the environment variable POD_NAME; else,
	// in a Pod, the host name, which is the name of the Pod unless its spec sets hostNetwork or
	// hostname. It is empty outside of a Pod, and in a program of operator.Run.
	Pod string
	// Elected is closed when the program begins to lead: see the flag --leader-elect of package
	// operator. A controller opens its streams before that, and reconciles after it. Elected is nil
	// in a program without leader election, which acts from its start on.
	Elected <-chan struct{}
}

// WaitElected waits until the program leads. If ctx ends first, it returns the cause of that end as
// an error. Without leader election it returns nil at once.
func (rt *Runtime) WaitElected(ctx context.Context) error {
	if rt.Elected == nil {
		return nil
	}
	select {
	case <-rt.Elected:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isElected reports whether the program leads, or needs no election.
func (rt *Runtime) isElected() bool {
	if rt.Elected == nil {
		return true
	}
	select {
	case <-rt.Elected:
		return true
	default:
		return false
	}
}

// CachedClient returns a client for tasks, handlers and the like. It reads from the streams that the
// controllers of the program have opened, once they are synced, and reads everything else from the
// server. A read through the client is at least as new as every write through it, and as every write
// through the clients of reconciles. It differs from the client of a reconcile: it may read the state
// before the triggering change, and it sends applies without effect.
func (rt *Runtime) CachedClient() *kube.Client {
	return rt.Client.With(rt.Cache.Handler)
}
