package serving

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	close func()
}

func newPipes() pipes {
	conns := make(chan net.Conn)
	return pipes{conns, sync.OnceFunc(func() { close(conns) })} // the server closes it twice
}

func (p pipes) Accept() (net.Conn, error) {
	c, isOpen := <-p.conns
	if !isOpen {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error { p.close(); return nil }
func (pipes) Addr() net.Addr { return pipeAddr("server") }

// dial returns the end of a connection from an address.
func (p pipes) dial(address string) net.Conn {
	client, server := net.Pipe()
	p.conns <- pipeConn{server, pipeAddr(address + ":1234")}
	return client
}

type pipeConn struct {
	net.Conn
	address pipeAddr
}

func (c pipeConn) RemoteAddr() net.Addr { return c.address }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

// call sends the head of a call with n bytes, and passes the connection to send, which sends the body. It returns the status and how
// long the answer took. The status is 0 if there is no answer.
func (p pipes) call(address string, n int, send func(net.Conn)) (status int, took time.Duration) {
	began := time.Now()
	c := p.dial(address)
	sent := make(chan struct{})
	defer func() { <-sent }()
	defer c.Close()
	_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", n)
	go func() {
		defer close(sent)
		send(c)
	}()
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	took = time.Since(began)
	if err != nil {
		return 0, took
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, took
}

// sendEach sends n bytes each second.
func sendEach(n int) func(net.Conn) {
	return func(c net.Conn) {
		for part := bytes.Repeat([]byte(" "), n); ; time.Sleep(time.Second) {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
	}
}

// sendAll sends n bytes.
func sendAll(n int) func(net.Conn) {
	return func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte(" "), n)) }
}

// withServer runs f beside a server whose calls have four places. The function of a call takes as long as its query says.
func withServer(t *testing.T, f func(p pipes, log *bytes.Buffer)) {
	synctest.Test(t, func(*testing.T) {
		var capacity Capacity
		var text bytes.Buffer
		log, places := slog.New(slog.NewTextHandler(&text, nil)), NewPlaces(4)
		refuse := func(w http.ResponseWriter, r *http.Request, refusal *Refusal) {
			capacity.LogRefusal(log, r, refusal)
			w.Header().Set("Connection", "close")
			w.WriteHeader(refusal.Code)
		}
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, refusal := capacity.ReadBody(w, r, 7<<20)
			if refusal != nil {
				refuse(w, r, refusal)
				return
			}
			defer body.Release()
			place, refusal := TakePlace(r.Context(), places, r)
			if refusal != nil {
				refuse(w, r, refusal)
				return
			}
			defer place.Release()
			if bytes.HasPrefix(body.Bytes, []byte("slow")) {
				time.Sleep(5 * time.Second)
				if r.Context().Err() != nil {
					return // the client sees no answer
				}
			}
			WriteAnswer(w, []byte("ok"))
		})
		p := newPipes()
		s := Serve(p, handler, Options{Log: slog.New(slog.DiscardHandler), Fail: func(err error) { t.Error(err) }})
		f(p, &text)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.Close(ctx)
		if capacity.bodies().taken != 0 || places.taken != 0 {
			t.Errorf("%d bytes and %d places are taken", capacity.bodies().taken, places.taken)
		}
	})
}

// Regression: a call took one of 64 places before its body was read. So 70 connections of a stranger with one byte a
// second stopped all webhooks of a program.
func TestSlowBodiesTakeNoPlace(t *testing.T) {
	t.Parallel()
	withServer(t, func(p pipes, log *bytes.Buffer) {
		const slow = 70
		ended := make(chan string, slow)
		for range slow {
			go func() {
				status, took := p.call("stranger", 100, sendEach(1))
				ended <- fmt.Sprint(status, " ", took.Truncate(time.Second))
			}()
		}
		synctest.Wait()
		if status, took := p.call("server", 100, sendAll(100)); status != 200 || took != 0 {
			t.Errorf("another address: %d after %s", status, took)
		}
		for range slow {
			if got := <-ended; got != "408 2s" {
				t.Errorf("a slow body: %s", got)
			}
		}
		if n := strings.Count(log.String(), "slower than 1 MiB a second"); n != 1 {
			t.Errorf("%d lines about slow bodies: %s", n, log)
		}
	})
}

func TestBodiesOfSomeRate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, rate int
		want       string
	}{
		"2 MiB a second": {7 << 20, 2 << 20, "200 3s"},
		"1 MiB a second": {7 << 20, 1 << 20, "200 6s"},
		"300 KiB a second, of which the first 2 s do not matter": {600 << 10, 300 << 10, "200 1s"},
		"300 KiB a second": {7 << 20, 300 << 10, "408 2s"},
		"nothing":          {7 << 20, 0, "408 2s"},
		"no body":          {0, 0, "200 0s"},
		"too large":        {8 << 20, 1 << 20, "413 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withServer(t, func(p pipes, _ *bytes.Buffer) {
				status, took := p.call("server", c.size, sendEach(c.rate))
				if got := fmt.Sprint(status, " ", took.Truncate(time.Second)); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// A stranger announces bodies as large as all the room, and sends as little as is allowed. Another address gets room at once.
func TestRoomOfOneAddressForAnother(t *testing.T) {
	t.Parallel()
	withServer(t, func(p pipes, _ *bytes.Buffer) {
		answers := make(chan int, 9)
		for range 9 {
			go func() {
				status, _ := p.call("stranger", 7<<20, sendEach(1<<20))
				answers <- status
			}()
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		if status, took := p.call("stranger", 7<<20, sendAll(7<<20)); status != 429 || took != 0 {
			t.Errorf("one more of the busiest address: %d after %s", status, took)
		}
		if status, took := p.call("server", 7<<20, sendAll(7<<20)); status != 200 || took != 0 {
			t.Errorf("another address: %d after %s", status, took)
		}
		var all []int
		for range 9 {
			all = append(all, <-answers)
		}
		slices.Sort(all)
		if want := []int{200, 200, 200, 200, 200, 200, 200, 200, 429}; !slices.Equal(all, want) {
			t.Errorf("the stranger's calls: %v, want %v", all, want)
		}
	})
}

// Functions of one address take all places. A call of another one waits for the next place, and the busiest one is refused. The
// function may take longer than a body: the deadline of the body does not end the call.
func TestPlacesOfOneAddressForAnother(t *testing.T) {
	t.Parallel()
	withServer(t, func(p pipes, _ *bytes.Buffer) {
		slow := func(c net.Conn) { _, _ = io.WriteString(c, "slow") }
		answers := make(chan int, 4)
		for range 4 {
			go func() {
				status, _ := p.call("stranger", 4, slow)
				answers <- status
			}()
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if status, took := p.call("stranger", 4, slow); status != 429 || took != 0 {
			t.Errorf("the busiest address: %d after %s", status, took)
		}
		if status, took := p.call("server", 1, sendAll(1)); status != 429 || took != time.Second {
			t.Errorf("another address, while no place becomes free: %d after %s", status, took)
		}
		time.Sleep(3 * time.Second)
		if status, took := p.call("server", 1, sendAll(1)); status != 200 || took <= 0 || took > time.Second {
			t.Errorf("another address: %d after %s", status, took)
		}
		for range 4 {
			if status := <-answers; status != 200 {
				t.Errorf("a call with a place: %d", status)
			}
		}
	})
}

// The example of the comment of Places.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(4)
		var held []*Taken
		for _, address := range []string{"a", "a", "a", "b"} {
			held = append(held, p.Take(t.Context(), address, 1, nil))
		}
		if p.Take(t.Context(), "a", 1, nil) != nil {
			t.Error("the busiest address got a place")
		}
		got := make(chan *Taken)
		go func() { got <- p.Take(t.Context(), "b", 1, nil) }()
		synctest.Wait()
		held[0].Release()
		if <-got == nil {
			t.Error("b got no place")
		}
		for _, address := range []string{"a", "b"} {
			if p.Take(t.Context(), address, 1, nil) != nil {
				t.Errorf("%s got more than its half", address)
			}
		}
		go func() { got <- p.Take(t.Context(), "c", 1, nil) }()
		synctest.Wait()
		held[1].Release()
		if <-got == nil {
			t.Error("c got no place")
		}
	})
}
