//go:build !race

package kube

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"unsafe"
)

// directConn is a TCP connection whose system calls do not notify Go's scheduler, by RawSyscall. The notice is for system
// calls that can block, and those of a socket of Go cannot. After a rest the notice wakes a thread of the runtime,
// which then wakes up about every 70 µs until the program rests. So a program that handles one event now and then
// needs a seventh less of processor time without the notice: see lab/bench/RESULTS.md.
//
// While no data has arrived, a read waits as other connections do, and no thread waits with it.
type directConn struct {
	*net.TCPConn
	reads, writes directCall
}

// newDirectConn returns c as a directConn. It returns c itself if c is no TCP connection.
func newDirectConn(c net.Conn) net.Conn {
	tcp, isTCP := c.(*net.TCPConn)
	if !isTCP {
		return c
	}
	socket, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	d := &directConn{TCPConn: tcp}
	d.reads.number, d.reads.wait = syscall.SYS_READ, socket.Read
	d.writes.number, d.writes.wait, d.writes.isWhole = syscall.SYS_WRITE, socket.Write, true
	return d
}

// Read reads what has arrived.
func (d *directConn) Read(p []byte) (int, error) {
	n, err := d.reads.do(p)
	switch {
	case err != nil:
		return 0, d.opError("read", err)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes p.
func (d *directConn) Write(p []byte) (int, error) {
	n, err := d.writes.do(p)
	if err != nil {
		return n, d.opError("write", err)
	}
	return n, nil
}

// opError returns the error that other connections return.
func (d *directConn) opError(op string, err error) error {
	if wrapped, ok := errors.AsType[*net.OpError](err); ok {
		err = wrapped.Err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: err}
}

// directCall makes the system calls of one direction of a [directConn]. It calls the function wait of the socket, which
// calls attempt at once, and again each time the socket is ready, until attempt returns true.
//
// For example, 100 KB are to be written, and the socket has room for 64 KB. The first attempt writes 64 KB, and then
// receives EAGAIN. So it returns false. When the other end has read, the second attempt writes the rest and returns
// true.
type directCall struct {
	// number is the number of the system call.
	number uintptr
	wait   func(attempt func(fd uintptr) bool) error
	// isWhole is true if all bytes are to be handled, and false if some are enough.
	isWhole bool

	mu sync.Mutex
	// rest is the part of the bytes that is left, and count is the number of the handled bytes.
	rest  []byte
	count int
	errno syscall.Errno
	// attempt is the method attemptLocked. The field keeps each call from an allocation.
	attempt func(fd uintptr) bool
}

// do reads into p, or writes p. It returns the number of the handled bytes.
func (c *directCall) do(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempt == nil {
		c.attempt = c.attemptLocked
	}
	c.rest, c.count, c.errno = p, 0, 0
	err := c.wait(c.attempt)
	c.rest = nil
	if err == nil && c.errno != 0 {
		err = c.errno
	}
	return c.count, err
}

// attemptLocked makes the system call. It reports whether the call is done. Otherwise the socket is not ready.
func (c *directCall) attemptLocked(fd uintptr) (isDone bool) {
	for len(c.rest) > 0 {
		// RawSyscall is the function without the notice. The sockets of package net do not block.
		n, _, errno := syscall.RawSyscall(c.number, fd, uintptr(unsafe.Pointer(&c.rest[0])), uintptr(len(c.rest)))
		switch errno {
		case 0:
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			c.errno = errno
			return true
		}
		c.count += int(n)
		c.rest = c.rest[n:]
		if !c.isWhole || n == 0 {
			return true
		}
	}
	return true
}
