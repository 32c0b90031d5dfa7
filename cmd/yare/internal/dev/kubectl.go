package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/yare-go/yare/internal/plane/process"
)

// kubectl is the kubectl in the control plane binary, with access to its cluster.
type kubectl struct {
	binary     string
	kubeconfig string
}

// run runs kubectl with input as its standard input and returns its standard output. The error
// includes its standard error.
func (k kubectl) run(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(k.binary, append([]string{"kubectl", "--kubeconfig", k.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := process.Run(ctx, cmd)
	if err == nil {
		return stdout.String(), nil
	}
	if context.Cause(ctx) != nil {
		return "", fmt.Errorf("kubectl %s: %w", args[0], context.Cause(ctx))
	}
	if output := strings.TrimSpace(stderr.String()); output != "" {
		return "", errors.New(output)
	}
	return "", fmt.Errorf("kubectl %s: %w", args[0], err)
}

// applySample applies a sample. While the server does not serve a new kind yet, or restarts, it
// tries again.
func (k kubectl) applySample(ctx context.Context, text string) (string, error) {
	until := time.Now().Add(10 * time.Second)
	for {
		out, err := k.run(ctx, text, "apply", "--server-side", "--force-conflicts", "--field-manager=yare-dev", "-f", "-")
		if err == nil || !isTransient(err) || time.Now().After(until) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// isTransient reports whether the same call may succeed later.
func isTransient(err error) bool {
	for _, text := range []string{
		"no matches for kind", "could not find the requested resource", "connection refused", "EOF",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
