package yaretest

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Kubectl runs kubectl with an administrator's rights and returns its standard output. If
// kubectl fails, it fails t.
func (c *Cluster) Kubectl(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	stdout, stderr, err := c.TryKubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// TryKubectl runs kubectl with an administrator's rights and returns its output. err is not nil
// if kubectl fails.
func (c *Cluster) TryKubectl(t testing.TB, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	binary, err := c.kubectlBinary(t.Context())
	if err != nil {
		return "", "", err
	}
	cmd := exec.Command(binary, append([]string{"kubectl", "--kubeconfig", c.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("run kubectl: %w", err)
	}
	return out.String(), errs.String(), err
}
