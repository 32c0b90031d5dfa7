package pods_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/pods"
)

// serve returns a client of a server that speaks a subprotocol as an API server does. handle gets
// each connection.
func serve(t *testing.T, protocol string, handle func(r *http.Request, conn *websocket.Conn)) *kube.Client {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/n/pods/web/") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","reason":"NotFound","message":"pods \"other\" not found","details":{"name":"other"}}`)
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{protocol}})
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.CloseNow() }()
		handle(r, conn)
	}))
	// API servers offer HTTP/2, over which this needs another handshake.
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	client, err := kube.NewClient(&kube.Config{Host: server.URL, Insecure: true, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func send(t *testing.T, conn *websocket.Conn, channel byte, text string) {
	t.Helper()
	if err := conn.Write(context.Background(), websocket.MessageBinary, append([]byte{channel}, text...)); err != nil {
		t.Error(err)
	}
}

// input reads standard input to its end.
func input(conn *websocket.Conn) string {
	var in []byte
	for {
		_, message, err := conn.Read(context.Background())
		if err != nil {
			return string(in) + "!" + err.Error()
		}
		switch message[0] {
		case 0:
			in = append(in, message[1:]...)
		case 255:
			return string(in)
		}
	}
}

const success = `{"metadata":{},"status":"Success"}`

// A command gets its input to the end, and its two outputs stay separate.
func TestExec(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	c := serve(t, "v5.channel.k8s.io", func(r *http.Request, conn *websocket.Conn) {
		asked <- r.URL.Path + "?" + r.URL.Query().Encode()
		for channel := range byte(4) {
			send(t, conn, channel, "") // API servers open the channels so
		}
		text := input(conn)
		send(t, conn, 1, text)
		send(t, conn, 2, fmt.Sprint(len(text)))
		send(t, conn, 3, success)
	})
	large := strings.Repeat("0123456789", 10_000)
	var out, errs bytes.Buffer
	err := pods.Exec(t.Context(), c, "n", "web", pods.Command{
		Container: "c", Args: []string{"sh", "-c", "cat"}, Stdin: strings.NewReader(large), Stdout: &out, Stderr: &errs,
	})
	if err != nil || out.String() != large || errs.String() != "100000" {
		t.Errorf("the command returned %d bytes and %q, %v", out.Len(), errs.String(), err)
	}
	want := "/api/v1/namespaces/n/pods/web/exec?command=sh&command=-c&command=cat&container=c&stderr=true&stdin=true&stdout=true&tty=false"
	if got := <-asked; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

func TestAttachWithATerminal(t *testing.T) {
	t.Parallel()
	c := serve(t, "v5.channel.k8s.io", func(r *http.Request, conn *websocket.Conn) {
		_, message, err := conn.Read(context.Background())
		if err != nil || message[0] != 4 {
			t.Errorf("read %q, %v in place of a size", message, err)
		}
		send(t, conn, 1, string(message[1:])+r.URL.Query().Get("tty")+r.URL.Query().Get("stderr"))
		send(t, conn, 3, success)
	})
	sizes := make(chan pods.Size, 1)
	sizes <- pods.Size{Width: 80, Height: 24}
	var out bytes.Buffer
	err := pods.Attach(t.Context(), c, "n", "web", pods.Command{TTY: true, Stdout: &out, Resize: sizes})
	if want := `{"Width":80,"Height":24}truefalse`; err != nil || out.String() != want {
		t.Errorf("the output is %q, %v; want %q", out.String(), err, want)
	}
}

func TestHowACommandEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status string
		want   string
		code   int
	}{
		"an exit code": {
			status: `{"status":"Failure","reason":"NonZeroExitCode","message":"exit 3","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}`,
			want:   `exec of the Pod "n/web": the command ended with the exit code 3`, code: 3,
		},
		"no such program": {status: `{"status":"Failure","reason":"InternalError","message":"no such file"}`, want: "the command did not run: no such file"},
		"no status":       {status: `{`, want: "read how the command ended"},
		"no end":          {want: "the connection ended before the command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, "v5.channel.k8s.io", func(_ *http.Request, conn *websocket.Conn) {
				if test.status != "" {
					send(t, conn, 3, test.status)
				}
			})
			err := pods.Exec(t.Context(), c, "n", "web", pods.Command{Args: []string{"x"}})
			exit, ok := errors.AsType[*pods.ExitError](err)
			if err == nil || !strings.Contains(err.Error(), test.want) || ok != (test.code != 0) || ok && exit.Code != test.code {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}

// The end of the context and a failing input end a command that hangs.
func TestExecEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hang := func(_ *http.Request, conn *websocket.Conn) {
		for {
			if _, _, err := conn.Read(context.Background()); err != nil {
				return
			}
		}
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
	c := serve(t, "v5.channel.k8s.io", hang)
	if err := pods.Exec(ctx, c, "n", "web", pods.Command{Args: []string{"sleep"}}); !errors.Is(err, enough) {
		t.Errorf("the error is %v", err)
	}
	broken := io.MultiReader(strings.NewReader("x"), failing{})
	if err := pods.Exec(t.Context(), c, "n", "web", pods.Command{Args: []string{"sleep"}, Stdin: broken}); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
}

var errBroken = errors.New("the input is broken")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

func TestRefusedCommands(t *testing.T) {
	t.Parallel()
	never := func(*http.Request, *websocket.Conn) {}
	old := serve(t, "v4.channel.k8s.io", never)
	c := serve(t, "v5.channel.k8s.io", never)
	run := pods.Command{Args: []string{"x"}}
	if err := pods.Exec(t.Context(), c, "n", "other", run); !kube.IsNotFound(err) {
		t.Errorf("a command in no Pod: %v", err)
	}
	for want, err := range map[string]error{
		"since Kubernetes 1.30": pods.Exec(t.Context(), old, "n", "web", run),
		"has no Args":           pods.Exec(t.Context(), c, "n", "web", pods.Command{}),
		"must be no Args":       pods.Attach(t.Context(), c, "n", "web", run),
		"is empty":              pods.Exec(t.Context(), c, "", "web", run),
		"the client is nil":     pods.Exec(t.Context(), nil, "n", "web", run),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

// forward echoes what comes on the channel of the port, in capitals.
func forward(t *testing.T) func(r *http.Request, conn *websocket.Conn) {
	return func(r *http.Request, conn *websocket.Conn) {
		port := make([]byte, 2)
		_, err := fmt.Sscan(r.URL.Query().Get("ports"), new(uint16))
		if err != nil {
			t.Error(err)
		}
		binary.LittleEndian.PutUint16(port, 80)
		send(t, conn, 0, string(port))
		send(t, conn, 1, string(port))
		if r.URL.Query().Get("ports") == "81" {
			send(t, conn, 1, "connection refused")
			return
		}
		for {
			_, message, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			text := string(message[1:])
			send(t, conn, 0, strings.ToUpper(text))
			if text == "bye" {
				_ = conn.Close(websocket.StatusNormalClosure, "")
				return
			}
		}
	}
}

func TestDial(t *testing.T) {
	t.Parallel()
	c := serve(t, "v4.channel.k8s.io", forward(t))
	conn, err := pods.Dial(t.Context(), c, "n", "web", 80)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if conn.RemoteAddr().String() != "n/web:80" {
		t.Errorf("the address is %s", conn.RemoteAddr())
	}
	for _, text := range []string{"hello", strings.Repeat("x", 100_000)} {
		go func() { _, _ = io.WriteString(conn, text) }()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != strings.ToUpper(text) {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
	}
	if _, err := io.WriteString(conn, "bye"); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(conn); err != nil || string(rest) != "BYE" {
		t.Errorf("read %q, %v", rest, err)
	}
}

func TestDialFails(t *testing.T) {
	t.Parallel()
	c := serve(t, "v4.channel.k8s.io", forward(t))
	refused, err := pods.Dial(t.Context(), c, "n", "web", 81)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	if _, err := io.ReadAll(refused); err == nil || !strings.Contains(err.Error(), "the port n/web:81: connection refused") {
		t.Errorf("the error is %v", err)
	}
	silent, err := pods.Dial(t.Context(), c, "n", "web", 80)
	if err != nil {
		t.Fatal(err)
	}
	if err := silent.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error after the deadline is %v", err)
	}
	_ = silent.Close()
	if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the error after Close is %v", err)
	}
	if _, err := pods.Dial(t.Context(), c, "n", "web", 0); err == nil || !strings.Contains(err.Error(), "0 is no port") {
		t.Errorf("the error is %v", err)
	}
	if _, err := pods.Dial(t.Context(), c, "n", "other", 80); !kube.IsNotFound(err) {
		t.Errorf("a port of no Pod: %v", err)
	}
}
