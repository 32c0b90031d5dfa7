package up

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalContext returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. A second one of these signals ends the
// process at once, and its children with it.
//
// SIGPIPE ends the context too, and never the process: the reader of the output may have gone, and the process must still
// remove what it has made.
func signalContext() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for isInterrupted := false; ; {
			select {
			case <-signals:
				if isInterrupted {
					os.Exit(1)
				}
				isInterrupted = true
				cancel()
			case <-pipes:
				cancel()
			case <-stopped:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(stopped)
		<-done
		cancel()
	}
}
