package pods_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/yare-go/yare/kube"
	"github.com/yare-go/yare/kube/pods"
)

// A backup of a database in a Pod: a command whose output is the backup. The exit code shows what went wrong.
func ExampleExec() {
	backUp := func(ctx context.Context, client *kube.Client, pod string) ([]byte, error) {
		var out, problems bytes.Buffer
		err := pods.Exec(ctx, client, "default", pod, pods.Command{Args: []string{"pg_dump", "app"}, Stdout: &out, Stderr: &problems})
		if exit, ok := errors.AsType[*pods.ExitError](err); ok {
			return nil, fmt.Errorf("pg_dump ended with %d: %s", exit.Code, problems.String())
		}
		return out.Bytes(), err
	}
	_ = backUp
}

// A terminal on the program that a container runs. The sizes of the window go to the container.
func ExampleAttach() {
	attach := func(ctx context.Context, client *kube.Client, pod string, sizes <-chan pods.Size) error {
		return pods.Attach(ctx, client, "default", pod, pods.Command{TTY: true, Stdin: os.Stdin, Stdout: os.Stdout, Resize: sizes})
	}
	_ = attach
}

// A connection to a port of a Pod, for a test or a tool outside of the cluster.
func ExampleDial() {
	ping := func(ctx context.Context, client *kube.Client, pod string) (string, error) {
		conn, err := pods.Dial(ctx, client, "default", pod, 6379)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
			return "", err
		}
		answer := make([]byte, 16)
		n, err := conn.Read(answer)
		return string(answer[:n]), err
	}
	_ = ping
}
