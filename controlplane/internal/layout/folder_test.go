package layout

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSweepTakesOnlyWhatNobodyUses(t *testing.T) {
	// Not t.TempDir: its path can be too long for a socket.
	root, err := os.MkdirTemp("", "folder")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	t.Setenv("TMPDIR", root)

	used, err := NewFolder("")
	if err != nil {
		t.Fatal(err)
	}
	killed, err := NewFolder("")
	if err != nil {
		t.Fatal(err)
	}
	killed.lock.Close()                                // as the kernel does when a process dies
	fresh := filepath.Join(root, folderPrefix+"fresh") // its plane has not locked it yet
	other := filepath.Join(root, "other")
	for _, path := range []string{fresh, other} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if swept := Sweep(); len(swept) != 1 || swept[0] != killed.Path {
		t.Errorf("swept %v, want %s", swept, killed.Path)
	}
	if err := used.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(used.Path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestFolderThatTheUserChose(t *testing.T) {
	root, err := os.MkdirTemp("", "folder")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(root)
	defer syscall.Umask(syscall.Umask(0))

	path := filepath.Join(root, "new")
	folder, err := NewFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	if _, err := NewFolder(path); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a folder in use: %v", err)
	}
	folder.lock.Close()
	if folder, err = NewFolder(path); err != nil {
		t.Errorf("what a killed plane left: %v", err)
	} else if err := folder.Remove(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolder(root); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if _, err := NewFolder(filepath.Join(root, strings.Repeat("x", 120))); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long path: %v", err)
	}
}
