// Package pods runs commands in the containers of Pods, and opens connections to their ports.
//
//	var out bytes.Buffer
//	err := pods.Exec(ctx, client, "default", "web-0", pods.Command{Args: []string{"cat", "/etc/hostname"}, Stdout: &out})
//
//	conn, err := pods.Dial(ctx, client, "default", "web-0", 8080)
//
// It speaks WebSocket: the subprotocol v5.channel.k8s.io for commands (KEP-4006, API servers since
// 1.30), and v4.channel.k8s.io for ports, which the API server passes on to the kubelet. Only programs
// that import this package link a WebSocket library.
//
// The requests pass the handlers of the client. They need the permissions get and create on
// pods/exec, pods/attach or pods/portforward. Logs need no WebSocket: see [kube.API.Logs].
package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/yare-go/yare/kube"
)

// The channels of v5.channel.k8s.io. The first byte of a message names its channel.
const (
	channelStdin byte = iota
	channelStdout
	channelStderr
	// channelError carries a metav1.Status when the command has ended.
	channelError
	channelResize
	// channelClose carries the number of a channel that its sender writes no more.
	channelClose byte = 255
)

const execProtocol = "v5.channel.k8s.io"

// Command is a command in a container of a Pod, and its streams.
type Command struct {
	// Container names the container. It is required for a Pod with several containers, unless the
	// annotation kubectl.kubernetes.io/default-container names a container.
	Container string
	// Args are the program and its arguments. No shell interprets them.
	Args []string
	// Stdin is the input of the command, or nil. The input of the command ends where Stdin ends.
	Stdin io.Reader
	// Stdout and Stderr receive the output. Nil drops the output. With a TTY, Stdout receives both.
	Stdout, Stderr io.Writer
	// TTY gives the command a terminal.
	TTY bool
	// Resize receives the sizes of the terminal. It may be nil.
	Resize <-chan Size
}

// Size is the size of a terminal in characters.
type Size struct{ Width, Height uint16 }

// ExitError is the error of a command that ended with another exit code than 0. Message is the text
// that came with the code.
type ExitError struct {
	Code    int
	Message string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("the command ended with the exit code %d", e.Code)
}

// Exec runs a command in a container of a Pod, and returns when the command has ended. An exit code
// other than 0 is an [*ExitError]. When ctx ends, Exec returns the cause of ctx, and the command may go
// on: the API has no way to end it. Exec does not wait for a read of Stdin that blocks.
func Exec(ctx context.Context, c *kube.Client, namespace, name string, command Command) error {
	if len(command.Args) == 0 {
		return fmt.Errorf("exec of the Pod %q: the command has no Args: name a program", namespace+"/"+name)
	}
	return command.run(ctx, c, namespace, name, "exec")
}

// Attach connects to the program that a container runs, and returns when the program has ended. Args
// must be empty. Otherwise Attach does what [Exec] does.
func Attach(ctx context.Context, c *kube.Client, namespace, name string, command Command) error {
	if len(command.Args) > 0 {
		return fmt.Errorf("attach to the Pod %q: its program runs already, so there must be no Args", namespace+"/"+name)
	}
	return command.run(ctx, c, namespace, name, "attach")
}

func (command Command) query() url.Values {
	q := url.Values{"command": command.Args}
	if command.Container != "" {
		q.Set("container", command.Container)
	}
	q.Set("stdin", strconv.FormatBool(command.Stdin != nil))
	q.Set("stdout", "true")
	q.Set("stderr", strconv.FormatBool(!command.TTY))
	q.Set("tty", strconv.FormatBool(command.TTY))
	return q
}

// run runs the command over a new connection.
func (command Command) run(ctx context.Context, c *kube.Client, namespace, name, subresource string) error {
	socket, err := openSocket(ctx, c, namespace, name, subresource, execProtocol, command.query())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	// The connection is closed before cancel. Otherwise the read and a ping would close it at the same time.
	defer func() { _ = socket.conn.CloseNow() }()
	running.Go(func() { socket.readMessages(ctx) })
	running.Go(func() { socket.keepAlive(ctx, cancel) })
	if command.Resize != nil {
		running.Go(func() { command.sendSizes(ctx, socket) })
	}
	if command.Stdin != nil {
		// A read can block for ever, and nothing can end it: this goroutine is not waited for.
		go command.sendInput(ctx, socket, cancel)
	}
	err = command.receive(ctx, socket)
	if _, ended := errors.AsType[*ExitError](err); err != nil && !ended && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s of the Pod %q: %w", subresource, namespace+"/"+name, err)
	}
	return nil
}

// receive writes the output of the command until it has ended.
func (command Command) receive(ctx context.Context, socket *socket) error {
	for {
		message, err := socket.next(ctx)
		if err != nil {
			return fmt.Errorf("the connection ended before the command: %w", err)
		}
		if len(message) < 2 {
			continue // a channel is open
		}
		channel, data := message[0], message[1:]
		var to io.Writer
		switch channel {
		case channelStdout:
			to = command.Stdout
		case channelStderr:
			to = command.Stderr
		case channelError:
			return commandError(data)
		}
		if to == nil {
			continue
		}
		if _, err := to.Write(data); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
}

// commandError returns the error of a command that ended with this Status, or nil if the command succeeded.
func commandError(status []byte) error {
	var s metav1.Status
	if err := kube.Unmarshal(status, &s); err != nil {
		return fmt.Errorf("read how the command ended: %w", err)
	}
	if s.Status == metav1.StatusSuccess {
		return nil
	}
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if code, err := strconv.Atoi(cause.Message); err == nil && cause.Type == "ExitCode" {
				return &ExitError{Code: code, Message: s.Message}
			}
		}
	}
	return fmt.Errorf("the command did not run: %s", cmp.Or(s.Message, "the server gives no reason"))
}

// sendInput sends Stdin to its end.
func (command Command) sendInput(ctx context.Context, socket *socket, cancel context.CancelCauseFunc) {
	message := make([]byte, 1+16<<10)
	message[0] = channelStdin
	for {
		n, err := command.Stdin.Read(message[1:])
		if n > 0 && socket.write(ctx, message[:1+n]) != nil {
			return // receive returns why
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = socket.write(ctx, []byte{channelClose, channelStdin})
			return
		case err != nil:
			cancel(fmt.Errorf("read the input: %w", err))
			return
		}
	}
}

// sendSizes sends the sizes of the terminal until ctx ends or Resize is closed.
func (command Command) sendSizes(ctx context.Context, socket *socket) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-command.Resize:
			if !ok {
				return
			}
			message := fmt.Appendf([]byte{channelResize}, `{"Width":%d,"Height":%d}`, size.Width, size.Height)
			if socket.write(ctx, message) != nil {
				return
			}
		}
	}
}
