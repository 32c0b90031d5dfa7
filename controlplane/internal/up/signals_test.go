package up

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bug: a write to a connection that the peer had closed ended the whole control plane, because the process gets SIGPIPE for it.
func TestClosedConnectionDoesNotEndTheContext(t *testing.T) {
	ctx, _, stop := signalContext()
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = peer.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
	for err == nil {
		_, err = conn.Write([]byte("request"))
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx).Error(); !strings.Contains(cause, "the signal terminated") {
		t.Errorf("the context has ended: %s", cause)
	}
}

func TestOutputThatNobodyReadsEndsTheContext(t *testing.T) {
	ctx, end, stop := signalContext()
	defer stop()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	_ = reader.Close()
	if _, err := (outputWriter{writer, end}).Write([]byte("text")); err == nil {
		t.Fatal("there is no error")
	}
	<-ctx.Done()
	if cause := context.Cause(ctx).Error(); !strings.Contains(cause, "nobody reads the output") {
		t.Errorf("the context has ended: %s", cause)
	}
}
