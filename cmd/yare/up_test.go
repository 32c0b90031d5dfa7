package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestUp(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t)
			file := filepath.Join(s.dir, "kubeconfig")
			c := s.start("up", "--kubeconfig", "kubeconfig")
			c.says(1, "export KUBECONFIG="+file)
			c.says(1, " kubectl get nodes")
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
			c.signal(sig)
			if status := c.wait(); status != 0 {
				t.Errorf("status %d:\n%s", status, c.out.String())
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the kubeconfig is left: %v", err)
			}
			s.leftNothing()
		})
	}
}

// The plane of a killed yare cleans up by itself, and is no longer listed.
func TestUpKilled(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	c := s.start("up")
	c.says(1, "Ctrl-C")
	c.signal(syscall.SIGKILL)
	<-c.ended
	deadline := time.Now().Add(30 * time.Second)
	for {
		entries, err := os.ReadDir(s.tmp)
		if err == nil && len(entries) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %v, %v", entries, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if status, stdout, all := s.run("kubectl", "environment"); status != 0 || !strings.Contains(stdout, "KUBECONFIG=/dev/null\n") {
		t.Errorf("status %d, a dead plane is still used:\n%s", status, all)
	}
}
