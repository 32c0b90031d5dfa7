package yaretest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/internal/plane/policy"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// Target is what a program is run against: a [Cluster] with an administrator's rights, a
// [ServiceAccount] with its own, or a [Proxy] that can be cut.
type Target interface {
	// Kubeconfig returns the path of a kubeconfig file.
	Kubeconfig() string
	// targetCluster returns the cluster behind the target.
	targetCluster() *Cluster
}

// Program is a program that [RunParts] has started.
type Program struct {
	t     testing.TB
	clock *clock.Clock
	log   *testLog
	// stop ends the program. ended is closed when it has ended, and err is set then.
	stop  context.CancelFunc
	ended chan struct{}
	err   error
	// startup is where the controllers report that they have started.
	startup *startup
}

// RunParts runs the parts of a program in the process of the test, as [operator.Run] does, until
// the end of t. The test may end it earlier, with [Program.Stop]. When t ends, the program and its
// goroutines have ended. An error of the program fails t, and ends at once what t waits for by [Eventually], [WaitFor]
// and the like.
//
// The program works in the namespaces that t, or a test around t, has made with [Cluster.Namespace],
// so that concurrent tests do not meet; or in the namespaces of [Cluster.InNamespaces]; or else in
// all namespaces. Objects outside of namespaces are seen by all programs.
//
// The namespace of the program ([controller.Namespace], [controller.InOwnNamespace]) is the first one that t has made,
// or else a test around t. If there is none, it is the first one of [Cluster.InNamespaces], or else the namespace of
// the kubeconfig.
//
// RunParts first applies the admission policies of the parts, as [Cluster.ApplyPolicies] does. The policies stay until
// the end of t, so they are enforced while the program is stopped.
//
// A request that no part declares fails before the request is sent. The error contains the expression
// that declares the request: see [controller.Permission]. The clients of the test itself may do
// everything.
//
// The program logs to t, also at the level debug, and nowhere else. RunParts sets the default
// logger of package slog once, so that a function that calls [slog.InfoContext] with the context of
// its reconcile logs to its own test.
//
//	run := yaretest.RunParts(t, cluster, parts()...)
//	…
//	run.Advance(time.Hour)
func RunParts(t testing.TB, target Target, parts ...operator.Part) *Program {
	t.Helper()
	names, err := controllersOf(parts)
	if err != nil {
		t.Fatal(err)
	}
	config, namespace, err := kube.ConfigSource{Kubeconfig: target.Kubeconfig()}.Load()
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, config).WithFieldManager(strings.TrimSuffix(filepath.Base(os.Args[0]), ".test"))
	if namespaces := target.targetCluster().programNamespaces(t.Name()); len(namespaces) > 0 {
		client = client.InNamespaces(namespaces...)
	}
	namespace = target.targetCluster().ownNamespace(t.Name(), namespace)
	if policies := policy.OfParts(parts, namespace); len(policies) > 0 {
		target.targetCluster().applyPolicies(t, policies)
	}
	log := newTestLog(t)
	p := &Program{
		t: t, clock: target.targetCluster().tests.clockFor(t), log: log, ended: make(chan struct{}),
		startup: newStartup(names, len(parts)),
	}
	setDefaultLogger()
	ctx := programctx.WithShared(context.Background(), target.targetCluster().sharedByPrograms)
	ctx = access.WithCheck(logctx.WithProgramLogger(clock.With(ctx, p.clock), slog.New(log.handler())), namespace)
	ctx, p.stop = context.WithCancel(ctx)
	observed := make([]operator.Part, len(parts))
	for i, each := range parts {
		observed[i] = p.startup.observe(each)
	}
	go func() {
		defer close(p.ended)
		if p.err = operator.Run(ctx, client, observed...); p.err != nil {
			failedPrograms.add(t, p.err)
			t.Errorf("the program failed: %v", p.err)
		}
	}()
	t.Cleanup(func() { failedPrograms.remove(t) })
	t.Cleanup(p.Stop)
	select {
	case <-p.startup.allStarted:
	case <-p.ended:
		if p.err != nil {
			t.FailNow()
		}
	}
	return p
}

// controllersOf returns the names of all controllers among parts, or what is wrong with the parts.
func controllersOf(parts []operator.Part) (names []string, err error) {
	var errs []error
	for i, each := range parts {
		if each == nil {
			errs = append(errs, fmt.Errorf("the part %d is nil", i+1))
			continue
		}
		needs, err := each.Needs()
		errs = append(errs, err)
		names = append(names, needs.Controllers...)
	}
	return names, errors.Join(errs...)
}

// Stop ends the program as a signal would, and returns when it has ended. Calling Stop again has no
// effect.
func (p *Program) Stop() {
	p.stop()
	<-p.ended
	p.log.end()
}

// Advance moves the time of the program forward by d, and returns when all reconciles that became
// due have ended. It moves what the controllers of the program wait for: requeues, the back-offs
// after errors, delayed triggers, and controller.Every. controller.Now returns the moved time.
// Everything else keeps the real time: requests, streams, the server with its own controllers and
// simulated Pods, timeouts, and functions that call [time.Now] or [time.After].
//
// All programs of one test have the same time, so that a program can be stopped and run again.
//
// The time moves in steps. First Advance waits until each controller has started and no object is
// ready or being reconciled. Then it moves the time to the next moment at which something is due,
// waits for the reconciles of this moment, and so on: an object that is requeued every ten seconds is
// reconciled six times in a minute. Advance does not wait for what the server does with the writes of
// a reconcile, nor for the reconciles that this leads to: see [Eventually] and [WaitFor].
//
// Advance fails the test when a step does not end within the timeout of the test (see
// YARETEST_TIMEOUT), or the program has ended.
func (p *Program) Advance(d time.Duration) {
	p.t.Helper()
	if d < 0 {
		p.t.Fatalf("the time cannot be moved by %s: it moves forward only", d)
	}
	ctx, cancel := context.WithCancelCause(p.t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		select {
		case <-p.ended:
			cancel(errors.New("the program has ended"))
		case <-ctx.Done():
		}
	})
	timeout := timeoutOf(p.t)
	select {
	case <-p.startup.allSubscribed:
	case <-ctx.Done():
		p.t.Fatalf("advance by %s: %v", d, context.Cause(ctx))
	case <-time.After(timeout):
		p.t.Fatalf("advance by %s: not all controllers have started within %s", d, timeout)
	}
	err := p.clock.Advance(ctx, d, timeout)
	if err == nil && p.hasEnded() {
		err = errors.New("the program has ended")
	}
	if err != nil {
		p.t.Fatalf("advance by %s: %v", d, err)
	}
}

func (p *Program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
