package pause

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The program runs until it is killed, and its ended children leave no zombies behind.
func TestProgramWaits(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the program is for Linux")
	}
	executable, err := program(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(name, executable, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// The last thing that the program does before it waits is to ignore SIGCHLD (signal 17).
	deadline := time.After(10 * time.Second)
	for !ignoresSIGCHLD(cmd.Process.Pid) {
		select {
		case err := <-ended:
			t.Fatalf("the program ended: %v", err)
		case <-deadline:
			t.Fatal("the program never ignored SIGCHLD")
		case <-time.After(time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("the program has ended: %v", err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("the program ended by %v, want by SIGTERM", err)
	}
}

func ignoresSIGCHLD(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if mask, found := strings.CutPrefix(line, "SigIgn:"); found {
			mask = strings.TrimSpace(mask)
			return len(mask) == 16 && mask[11] == '1' // bit 16
		}
	}
	return false
}

func TestProgramsAreValidFiles(t *testing.T) {
	t.Parallel()
	for architecture, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		executable, err := program(architecture)
		if err != nil {
			t.Fatal(err)
		}
		file, err := elf.NewFile(bytes.NewReader(executable))
		if err != nil {
			t.Fatalf("%s: %v", architecture, err)
		}
		if file.Machine != machine || len(file.Progs) != 1 || file.Progs[0].Filesz != uint64(len(executable)) || file.Entry != loadAddress+headerSize {
			t.Errorf("%s: the headers are %+v, %+v", architecture, file.FileHeader, file.Progs)
		}
	}
	if _, err := program("s390x"); err == nil || !strings.Contains(err.Error(), "amd64 or arm64") {
		t.Errorf("the error for another architecture is %v", err)
	}
}
