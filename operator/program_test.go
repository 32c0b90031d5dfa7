package operator

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yare-go/yare/yaretest"
)

// start starts this test binary as one of its programs.
func start(t *testing.T, kubeconfig, name string, args ...string) *yaretest.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return yaretest.Run(t, kubeconfig, self, append([]string{"as:" + name}, args...)...)
}

// nowhere returns the kubeconfig of a server that does not exist.
func nowhere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: c, user: {}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"failing": 1, "finished": 0, "panicking": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, nowhere(t), name)
			if status := p.Wait(t); status != want {
				t.Errorf("the status is %d, not %d", status, want)
			}
			if log := strings.Join(p.Log(), "\n"); name == "failing" && !strings.HasSuffix(log, ": it went wrong") {
				t.Errorf("it said: %s", log)
			}
		})
	}
	p := start(t, nowhere(t), "finished", "--context", "elsewhere")
	if status := p.Wait(t); status != 1 || !strings.Contains(strings.Join(p.Log(), ""), `"elsewhere"`) {
		t.Errorf("with an unknown context: status %d, %v", status, p.Log())
	}
}

// After a signal the parts may finish, and the status is 0. A second signal ends the program.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			slow := start(t, nowhere(t), "slow")
			slow.WaitForLine(t, "started")
			slow.Signal(t, signal)
			if status := slow.Wait(t); status != 0 || slow.Lines()[len(slow.Lines())-1] != "finished" {
				t.Errorf("status %d after %v, %v", status, slow.Lines(), slow.Log())
			}
			stubborn := start(t, nowhere(t), "stubborn")
			stubborn.WaitForLine(t, "started")
			// Equal signals that come close together can be one; the second is sent until
			// it is noticed.
			for {
				stubborn.Signal(t, signal)
				if strings.Contains(strings.Join(stubborn.Log(), ""), "second signal") {
					break
				}
			}
			if status := stubborn.Wait(t); status != 1 {
				t.Errorf("after two signals the status is %d", status)
			}
		})
	}
}
