package operator_test

import (
	"encoding/json"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/yare-go/yare/operator"
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

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"failing": 1, "finished": 0, "panicking": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, operator.Nowhere(t), name)
			if status := p.Wait(t); status != want {
				t.Errorf("the status is %d, not %d", status, want)
			}
			if log := strings.Join(p.Log(), "\n"); name == "failing" && !strings.HasSuffix(log, ": it went wrong") {
				t.Errorf("it said: %s", log)
			}
		})
	}
	p := start(t, operator.Nowhere(t), "finished", "--context", "elsewhere")
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
			slow := start(t, operator.Nowhere(t), "slow")
			slow.WaitForLine(t, "started")
			slow.Signal(t, signal)
			if status := slow.Wait(t); status != 0 || slow.Lines()[len(slow.Lines())-1] != "finished" {
				t.Errorf("status %d after %v, %v", status, slow.Lines(), slow.Log())
			}
			stubborn := start(t, operator.Nowhere(t), "stubborn")
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

// The first line of the log has the versions that --version prints, so the log of a Pod names what runs in it. The line also
// comes when the program fails before it runs.
func TestFirstLineOfTheLogHasTheVersions(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"finished": nil, "without a cluster": {"--context", "elsewhere"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, operator.Nowhere(t), "finished", args...)
			p.Wait(t)
			var first struct{ Level, Msg, Program, Version, Yare, Go string }
			if lines := p.Log(); len(lines) == 0 || json.Unmarshal([]byte(lines[0]), &first) != nil {
				t.Fatalf("the first line of the log is no JSON: %v", lines)
			}
			want := first
			want.Level, want.Msg, want.Program, want.Go = "INFO", "starting", "operator.test", runtime.Version()
			if first != want || first.Version == "" || first.Yare == "" {
				t.Errorf("the first line of the log is %+v", first)
			}
		})
	}
}

// A whole program serves its health, lets its part finish after a signal, and ends with
// status 0.
func TestProgramThatListens(t *testing.T) {
	t.Parallel()
	p := start(t, operator.Nowhere(t), "slow", "--listen", "127.0.0.1:0")
	p.WaitForLog(t, "serving health and metrics")
	p.WaitForLine(t, "started")
	var logged struct{ Msg, Address string }
	for _, line := range p.Log() {
		if strings.Contains(line, "serving health and metrics") {
			if err := json.Unmarshal([]byte(line), &logged); err != nil {
				t.Fatal(err)
			}
		}
	}
	address, err := net.ResolveTCPAddr("tcp", logged.Address)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, text := operator.Ask(t, address, path); code != 200 || text != "ok\n" {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	if code, text := operator.Ask(t, address, "/metrics"); code != 200 || !strings.Contains(text, "\nyare_build_info{") {
		t.Errorf("/metrics: %d %s", code, text)
	}
	if status := p.Interrupt(t); status != 0 {
		t.Errorf("the status is %d", status)
	}
	p.WaitForLine(t, "finished")
}
