package engine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/yare-go/yare/internal/access"
	"github.com/yare-go/yare/internal/access/programctx"
	"github.com/yare-go/yare/internal/clock"
	"github.com/yare-go/yare/internal/logctx"
	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/operator"
)

// Parts returns the launcher of the operator made of the parts that a function returns. A "process" of the operator
// is a call of the function, and runs in this process. The field manager of the parts has the name of the operator.
func Parts(name string, parts func() []operator.Part) Launcher {
	return RunParts(name, func(string, string) []operator.Part { return parts() })
}

// RunParts returns the launcher of an operator, as [Parts] does. The function parts gets the namespace of the run, and
// the address by which the parts reach the external system.
func RunParts(name string, parts func(namespace, relayAddress string) []operator.Part) Launcher {
	return partsLauncher{name, parts, new(programctx.Shared)}
}

type partsLauncher struct {
	name  string
	parts func(namespace, relayAddress string) []operator.Part
	// shared is what all processes of an exploration have in common. A kind has one conversion in a cluster, so it must
	// outlive a crash, and the runs at the same time must not replace it.
	shared *programctx.Shared
}

func (p partsLauncher) String() string { return p.name }

func (p partsLauncher) account() *Account { return nil }

func (p partsLauncher) coverFolder() string { return "" }

func (p partsLauncher) close() error { return p.shared.Close() }

func (p partsLauncher) launch(s processSettings) (process, error) {
	client, err := kube.NewClient(s.config)
	if err != nil {
		return nil, err
	}
	client = client.WithFieldManager(p.name).InNamespaces(s.namespace)
	log := slog.New(slog.NewTextHandler(s.output, &slog.HandlerOptions{Level: slog.LevelDebug}))
	running := &runningParts{clock: clock.New(), done: make(chan struct{})}
	ctx := logctx.WithProgramLogger(
		clock.With(programctx.WithRestarts(programctx.WithShared(context.Background(), p.shared)), running.clock), log)
	ctx, cancel := context.WithCancel(access.WithCheck(ctx, s.namespace))
	running.cancel = cancel
	go func() {
		defer close(running.done)
		running.failure = operator.Run(ctx, client, p.parts(s.namespace, s.relayAddress)...)
		if running.failure == nil && ctx.Err() == nil {
			running.failure = errors.New("the parts ended by themselves")
		}
	}()
	return running, nil
}

// runningParts are parts that run in this process.
type runningParts struct {
	clock  *clock.Clock
	cancel context.CancelFunc
	done   chan struct{}
	// failure is set before done is closed.
	failure error
}

const (
	// idleTime is how much time passes for parts at rest.
	idleTime = 10 * time.Minute
	// maxIdleWait is how long parts may take to come to rest at a time.
	maxIdleWait = time.Minute
)

func (p *runningParts) advance(ctx context.Context) (bool, error) {
	return true, p.clock.Advance(ctx, idleTime, maxIdleWait)
}

func (p *runningParts) isWorking() bool { return p.clock.IsWorking() }

func (p *runningParts) writeCoverage() {}

func (p *runningParts) kill() {
	p.cancel()
	<-p.done
}

func (p *runningParts) ended() <-chan struct{} { return p.done }

func (p *runningParts) err() error {
	<-p.done
	return p.failure
}
