package controller

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
)

// Log returns the logger of the work that ctx belongs to. In a reconcile or a cleanup its lines
// have the attributes controller, namespace, name and reconcileID, which differs between any two
// reconciles. In an operator.Task the lines have the attribute task. The logger is derived from the
// Log of the [Runtime]. Log returns [slog.Default] for every other ctx.
//
// Libraries that log by logr.FromContext, klog.FromContext, or log.FromContext of controller-runtime get the same
// logger.
func Log(ctx context.Context) *slog.Logger {
	if s, ok := logctx.From(ctx); ok {
		return s.Logger()
	}
	return slog.Default()
}

// Namespace returns the namespace of the program: see the field Namespace of [Runtime]. ctx is the context of a
// reconcile, a cleanup, a map function or a source. Namespace returns an empty string for every other ctx.
//
//	settings, err := kube.Get[corev1.ConfigMap](ctx, c, controller.Namespace(ctx), "settings")
func Namespace(ctx context.Context) string {
	namespace, _ := ctx.Value(namespaceKey{}).(string)
	return namespace
}

// namespaceKey is the key of the namespace of the program in a context.
type namespaceKey struct{}

// Now returns the time by which requeues, delayed triggers and [Every] are due. ctx is the context
// of a reconcile, a cleanup, a source or a part. Now is [time.Now] unless a test moves the time of
// the program forward: see Advance in package yaretest.
func Now(ctx context.Context) time.Time { return clock.From(ctx).Now() }

// reconcileContext is the context of one reconcile or cleanup. It is a part of the reconciliation, so that the
// context costs no allocation.
type reconcileContext struct {
	context.Context //nolint:containedctx // the reconcileContext is a context itself
	programLog      *slog.Logger
	controller      string
	key             kube.Key
	// id is the reconcile ID, a random number.
	id uint64
	// logger is made when it is asked for.
	logger atomic.Pointer[slog.Logger]
}

// start sets the fields of c, and gives c a new id.
func (c *reconcileContext) start(ctx context.Context, programLog *slog.Logger, controller string, key kube.Key) {
	c.Context, c.programLog, c.controller, c.key, c.id = ctx, programLog, controller, key, rand.Uint64()
}

// Value returns c as the scope of log lines, the logger of c for package logr, and otherwise the value of the context
// that c is derived from.
func (c *reconcileContext) Value(key any) any {
	switch key {
	case logctx.Key{}:
		return c
	case logctx.LogrKey:
		return c.Logger()
	}
	return c.Context.Value(key)
}

// LogAttrs returns the attributes that name the controller, the object and the reconcile.
func (c *reconcileContext) LogAttrs() []slog.Attr {
	return []slog.Attr{
		slog.String("controller", c.controller), slog.String("namespace", c.key.Namespace), slog.String("name", c.key.Name),
		slog.String("reconcileID", fmt.Sprintf("%016x", c.id)),
	}
}

// log logs a line with the attributes of c and others.
func (c *reconcileContext) log(level slog.Level, text string, others []slog.Attr) {
	c.programLog.LogAttrs(context.Background(), level, text, append(c.LogAttrs(), others...)...)
}

// Logger returns the logger of the program with the attributes of c.
func (c *reconcileContext) Logger() *slog.Logger {
	if l := c.logger.Load(); l != nil {
		return l
	}
	l := slog.New(c.programLog.Handler().WithAttrs(c.LogAttrs()))
	c.logger.Store(l)
	return l
}
