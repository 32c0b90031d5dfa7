package layout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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
	// Regression: `yare up` removed what others had made under such a name.
	foreign := map[string]func(path string) error{
		"a folder with a note": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "note"), nil, 0o600), os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
		},
		"a folder with a lock of another program": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, lockName), []byte("4711\n"), 0o600))
		},
		"a link to a folder of a killed plane": func(path string) error { return os.Symlink(killed.Path, path) },
		"a folder whose lock is a link": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink(filepath.Join(killed.Path, lockName), filepath.Join(path, lockName)))
		},
	}
	for name, create := range foreign {
		if err := create(filepath.Join(root, folderPrefix+name)); err != nil {
			t.Fatal(err)
		}
	}
	if swept := Sweep(); len(swept) != 1 || swept[0] != killed.Path {
		t.Errorf("swept %v, want %s", swept, killed.Path)
	}
	for name := range foreign {
		if _, err := os.Lstat(filepath.Join(root, folderPrefix+name)); err != nil {
			t.Errorf("%s was removed: %v", name, err)
		}
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
	if err := os.WriteFile(filepath.Join(root, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolder(root); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder of somebody else: %v", err)
	}
	long := filepath.Join(root, strings.Repeat("x", 120))
	if _, err := NewFolder(long); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long path: %v", err)
	}
	if _, err := os.Stat(long); err == nil {
		t.Error("the folder with the long path was made")
	}
	// An empty folder of the user was once removed with the error.
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFolder(long); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("an existing folder with a long path: %v", err)
	}
	if _, err := os.Stat(long); err != nil {
		t.Errorf("the folder of the user: %v", err)
	}
}
