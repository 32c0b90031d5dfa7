package up

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubeconfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	file, err := writeKubeconfig(path, []byte("content\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line, rest, _ := strings.Cut(string(got), "\n")
	if !strings.HasPrefix(line, "# written by yare up, pid ") || !strings.HasSuffix(line, "; removed when it stops") || rest != "content\n" {
		t.Errorf("the file is %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	if err := checkKubeconfig(path); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("the file of a living plane: %v", err)
	}
	if err := file.remove(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestKubeconfigOfSomebodyElseIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := writeKubeconfig(path, nil); err == nil || !strings.Contains(err.Error(), "remove it, or give another") {
		t.Errorf("the error is %v", err)
	}
}

func TestKubeconfigOfAKilledPlaneIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte("# written by yare up, pid 1; removed when it stops\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := writeKubeconfig(path, []byte("new\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.remove(); err != nil {
		t.Fatal(err)
	}
}

func TestKubeconfigThatWasReplacedIsNotRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	file, err := writeKubeconfig(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("it was removed")
	}
}
