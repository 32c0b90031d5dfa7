package externalsystem_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/yare-go/yare/explore/internal/externalsystem"
)

// newProxy returns a proxy in front of a server that answers each line with the line.
func newProxy(t *testing.T) *externalsystem.Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	p, err := externalsystem.Listen(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// ask sends a line by a new connection, and returns the answer and how long it took.
func ask(p *externalsystem.Relay, line string) (answer string, took time.Duration, err error) {
	began := time.Now()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", 0, err
	}
	lines := bufio.NewScanner(conn)
	if !lines.Scan() {
		return "", 0, fmt.Errorf("the connection ended: %w", lines.Err())
	}
	return lines.Text(), time.Since(began), nil
}

// A connection has three parts here: its beginning, the line and the answer.
func TestProxy(t *testing.T) {
	t.Parallel()
	t.Run("nothing injected", func(t *testing.T) {
		t.Parallel()
		p := newProxy(t)
		if answer, _, err := ask(p, "hello"); answer != "hello" || err != nil || p.Parts() != 3 {
			t.Errorf("the answer is %q after %d parts, %v", answer, p.Parts(), err)
		}
		if p.BeginStep(); p.Parts() != 0 {
			t.Errorf("the next step has had %d parts", p.Parts())
		}
	})
	t.Run("cut once", func(t *testing.T) {
		t.Parallel()
		p := newProxy(t)
		injected := p.Inject(externalsystem.Cut, 5)
		if _, _, err := ask(p, "one"); err != nil || injected.HasHappened() {
			t.Errorf("the first connection: %v, has happened %t", err, injected.HasHappened())
		}
		if _, _, err := ask(p, "two"); err == nil || !injected.HasHappened() {
			t.Errorf("the second connection: %v, has happened %t", err, injected.HasHappened())
		}
		if answer, _, err := ask(p, "three"); answer != "three" || p.IsDisturbing() {
			t.Errorf("the third connection: %q, %v", answer, err)
		}
	})
	t.Run("refused for a time", func(t *testing.T) {
		t.Parallel()
		p := newProxy(t)
		p.Inject(externalsystem.Refuse, 1)
		if _, _, err := ask(p, "one"); err == nil || !p.IsDisturbing() {
			t.Errorf("the first connection: %v", err)
		}
		for until := time.Now().Add(time.Minute); p.IsDisturbing() && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if _, _, err := ask(p, "two"); err == nil && p.IsDisturbing() {
				t.Error("a connection passes too early")
			}
		}
		if answer, _, err := ask(p, "three"); answer != "three" {
			t.Errorf("after the time: %q, %v", answer, err)
		}
	})
	t.Run("delayed", func(t *testing.T) {
		t.Parallel()
		p := newProxy(t)
		p.Inject(externalsystem.Delay, 1)
		if answer, took, err := ask(p, "one"); answer != "one" || took < 600*time.Millisecond {
			t.Errorf("the answer is %q after %s, %v", answer, took, err)
		}
	})
}
