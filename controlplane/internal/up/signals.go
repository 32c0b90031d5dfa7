package up

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. A
// second one ends the process at once; its children go with it.
//
// SIGPIPE ends it too, but never at once: a reader of our output that is gone must not end
// us before we have cleaned up.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for count := 0; ; count++ {
			select {
			case <-signals:
				if count > 0 {
					os.Exit(1)
				}
				cancel()
			case <-pipes:
				count--
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
