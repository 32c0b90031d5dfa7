package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// signalContext returns a context that ends with the first SIGINT, SIGTERM or SIGHUP, or by end. A second one of these
// signals ends the process at once, and its children with it. The cause of the end of the context names the signal.
//
// SIGPIPE has no effect. The process gets it for each write to a connection that the peer has closed, such as a request
// to an API server that is starting. Writes to the output end the context by [outputWriter].
func signalContext() (ctx context.Context, end context.CancelCauseFunc, stop func()) {
	ctx, end = context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	pipes := make(chan os.Signal, 1) // nobody reads it: further signals are dropped
	signal.Notify(pipes, syscall.SIGPIPE)
	stopped := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for isInterrupted := false; ; {
			select {
			case received := <-signals:
				if isInterrupted {
					os.Exit(1)
				}
				isInterrupted = true
				end(fmt.Errorf("received the signal %s: %w", received, context.Canceled))
			case <-stopped:
				return
			}
		}
	}()
	return ctx, end, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(stopped)
		<-done
		end(nil)
	}
}

// outputWriter ends a context when nobody reads the output any more, so that the process removes what it has made.
type outputWriter struct {
	io.Writer
	end context.CancelCauseFunc
}

func (w outputWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		w.end(fmt.Errorf("nobody reads the output: %w", context.Canceled))
	}
	return n, err
}
